"""Sessions of a Spark Connect server that runs elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession


@contextmanager
def connected(port: int) -> Iterator[SparkSession]:
    """Open a session; one that is left open blocks the end of the process."""
    spark = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
    try:
        yield spark
    finally:
        spark.stop()
