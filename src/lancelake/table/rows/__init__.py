"""Find, delete and update rows."""
