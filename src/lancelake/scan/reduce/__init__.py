"""Aggregates and first rows, computed per partition before any row leaves it."""
