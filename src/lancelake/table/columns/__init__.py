"""Schema evolution: add, drop, alter and join columns without rewriting rows."""
