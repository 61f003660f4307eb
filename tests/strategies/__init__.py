"""Hypothesis strategies for schemas, rows and table histories."""
