"""Filters answered by indices: which rows of which fragments a scan has to read."""
