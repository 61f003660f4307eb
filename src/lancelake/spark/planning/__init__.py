"""Catalog, tables, scans and writes for Spark's planner, implemented in Python."""
