"""Compaction, cleanup, optimize, check and repair as Spark jobs."""
