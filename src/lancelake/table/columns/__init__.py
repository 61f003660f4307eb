"""Columns of a table: added, dropped, altered, joined; no row is written anew."""
