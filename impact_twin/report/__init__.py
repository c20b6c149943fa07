"""Outcome classes, the summary, the report model and its renderers."""
