"""One module per operation, all of one shape: `apply`, `conflicts`, `rebase`, `RULES`."""
