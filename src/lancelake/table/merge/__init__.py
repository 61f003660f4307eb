"""Rows of a source merged into a table by key."""
