"""Writes by Spark: rows checked and fitted, written by executors, committed by the driver."""
