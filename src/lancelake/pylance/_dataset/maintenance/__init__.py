"""Dataset methods for compaction, cleanup, config and metadata."""
