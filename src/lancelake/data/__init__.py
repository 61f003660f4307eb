"""Rows in and out of files, as Arrow."""
