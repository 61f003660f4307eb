"""The same rows in fewer and fuller files."""
