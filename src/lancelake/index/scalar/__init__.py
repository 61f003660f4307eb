"""Indices on plain values: a module or folder for each kind."""
