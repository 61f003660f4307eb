"""Rules of operations: `apply`, `conflicts` and `rebase`, grouped by what the operations change."""
