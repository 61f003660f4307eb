"""Shared steps of row changes: find, mark as deleted, and rewrite rows."""
