"""Spark's own classes, reached through Py4J; all of it behind one version-checked gateway."""
