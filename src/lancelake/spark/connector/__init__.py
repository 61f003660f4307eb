"""Objects that Spark calls: catalogs, tables, writes, streams and commands."""
