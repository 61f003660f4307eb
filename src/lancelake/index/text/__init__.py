"""Index kind INVERTED: full text search."""
