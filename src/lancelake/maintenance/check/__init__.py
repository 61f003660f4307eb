"""Consistency checks of a table, reported as findings."""
