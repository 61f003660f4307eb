"""Merge, update and delete with Spark jobs."""
