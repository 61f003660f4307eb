"""What executors import: partitions, functions on rows, and their daemon."""
