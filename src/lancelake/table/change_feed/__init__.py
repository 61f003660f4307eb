"""Change data feed: row-level changes between two versions."""
