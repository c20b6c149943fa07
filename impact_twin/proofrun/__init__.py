"""Bundles that others can verify without running a model."""
