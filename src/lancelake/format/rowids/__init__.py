"""Stable row ids and row versions of fragments, and their encodings."""
