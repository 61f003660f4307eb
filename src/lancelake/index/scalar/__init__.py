"""Kinds of scalar indices, one module or folder each."""
