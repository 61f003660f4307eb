"""Removing old versions and the files that nothing needs any more."""
