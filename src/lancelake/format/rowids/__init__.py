"""Stable row ids and row versions: encodings and what they hold."""
