"""Data files of the legacy format (0.1), read by our own decoders."""
