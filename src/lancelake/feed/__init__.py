"""Change feed: the rows that versions inserted, updated and deleted."""
