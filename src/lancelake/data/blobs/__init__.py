"""Blob values: storage, reading and writing."""
