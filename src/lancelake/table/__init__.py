"""Table operations: snapshots, reads, writes, schema changes, refs and maintenance."""
