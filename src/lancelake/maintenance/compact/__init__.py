"""Compaction: rewrite rows into fewer and larger files."""
