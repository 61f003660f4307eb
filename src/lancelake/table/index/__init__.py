"""Indices of a table: built, listed, brought up to date, dropped."""
