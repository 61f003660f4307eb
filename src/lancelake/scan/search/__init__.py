"""Search by vector, by text, or by both, with a filter."""
