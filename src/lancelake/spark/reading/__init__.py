"""Reads by Spark: pushdown, partitions and the rows that executors return."""
