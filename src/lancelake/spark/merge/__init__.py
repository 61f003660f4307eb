"""A DataFrame merged into a table, on the executors."""
