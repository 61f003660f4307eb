"""Filters and expressions: parsing, binding and evaluation on Arrow batches."""
