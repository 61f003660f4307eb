"""Table names, definitions, metadata tables and procedures of a catalog."""
