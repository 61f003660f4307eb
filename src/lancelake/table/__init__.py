"""What users hold: versions of a table, and everything one can ask or do."""
