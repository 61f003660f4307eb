"""Sessions that know Lance tables: data source, catalog and methods of PySpark."""
