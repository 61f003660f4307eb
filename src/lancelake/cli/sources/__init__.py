"""Files that commands read rows from: Parquet, CSV, JSON and Arrow, and Delta tables."""
