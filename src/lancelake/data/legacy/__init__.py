"""Reader of data files of the legacy format (0.1)."""
