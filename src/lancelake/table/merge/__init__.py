"""Merge (upsert): rows of a source merged into a table by key."""
