"""Blob values: where they are stored, and how they are read and written."""
