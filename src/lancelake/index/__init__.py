"""Indices: kinds of indices over arrays and row ids, independent of tables."""
