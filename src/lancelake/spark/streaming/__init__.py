"""Streams out of a table, and into one."""
