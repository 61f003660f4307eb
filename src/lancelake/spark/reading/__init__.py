"""Reads on Spark: pushdown, partitions and conversion of rows on executors."""
