"""Columns that Spark computes, written by executors."""
