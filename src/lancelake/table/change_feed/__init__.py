"""What happened to the rows of a table between two versions."""
