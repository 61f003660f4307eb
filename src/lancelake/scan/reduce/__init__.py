"""Partial aggregates and top rows, computed per partition."""
