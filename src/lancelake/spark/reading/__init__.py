"""Versions of tables and scans of them, as Spark plans them."""
