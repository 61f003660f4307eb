"""Indices: kinds of them, each a module of one shape; bytes, arrays and row ids, no table."""
