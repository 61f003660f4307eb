"""From a built manifest to a version of a table."""
