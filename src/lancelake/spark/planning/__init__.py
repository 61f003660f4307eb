"""What Spark's planner talks to: catalog, tables, scans, written in Python."""
