"""Cleanup of old versions and of files that are no longer referenced."""
