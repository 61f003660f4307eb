"""Conversion of Arrow arrays between users' types and those of data files."""
