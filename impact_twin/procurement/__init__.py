"""The procurement world: records, tools, pairs, the suite and its digest, scoring of one case."""
