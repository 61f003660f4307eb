"""Care of tables: compaction, cleanup, check, repair, and all of them by settings."""
