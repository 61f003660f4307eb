"""Full text search of a version: rows ranked by their scores."""
