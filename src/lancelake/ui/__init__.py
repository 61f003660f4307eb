"""The explorer: a read-only page in the browser, served on this machine alone."""
