"""Rules of each operation: `apply`, `conflicts`, `rebase` and `RULES`, one module each."""
