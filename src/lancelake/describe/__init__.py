"""Descriptions of tables that the command line and Spark show: rows and JSON documents."""
