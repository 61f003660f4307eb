"""Access to Spark's JVM classes through Py4J, behind one version-checked gateway."""
