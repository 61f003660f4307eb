"""Rows from elsewhere: Arrow data, files, Delta tables."""
