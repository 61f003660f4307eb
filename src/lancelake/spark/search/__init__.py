"""Vector, text and hybrid search: on the driver for one query, as Spark jobs for many."""
