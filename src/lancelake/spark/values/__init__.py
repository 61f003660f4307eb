"""Types and options of Spark in ours."""
