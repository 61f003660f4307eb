"""Files that the versions of a table need, and files that it has."""
