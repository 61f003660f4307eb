"""Registration of Lance tables in sessions: data source, catalog and PySpark methods."""
