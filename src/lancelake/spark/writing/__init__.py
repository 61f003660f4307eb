"""Writes on Spark: rows are cast and checked, written by executors, committed by the driver."""
