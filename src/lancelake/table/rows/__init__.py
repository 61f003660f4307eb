"""Rows of a table found, taken out, changed."""
