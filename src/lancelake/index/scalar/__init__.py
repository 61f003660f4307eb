"""Scalar indices, one module or package for each kind."""
