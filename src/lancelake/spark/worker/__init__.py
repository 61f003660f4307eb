"""Functions in Python workers: their transport and their results."""
