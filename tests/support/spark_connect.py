"""A Spark Connect server for one process, on a port of its own."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession
from pyspark.sql.connect.client.core import DefaultChannelBuilder

PORT = "spark.connect.grpc.binding.port"


def connect_session(settings: Mapping[str, str] | None = None) -> SparkSession:
    """Start a server and return a session of it; tests may run such processes side by side."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    port = _free_port()
    # The client looks for a local server nowhere else than at the default port.
    DefaultChannelBuilder.default_port = staticmethod(lambda: port)  # type: ignore[method-assign]
    spark = SparkSession.builder.remote("local[2]").config(PORT, str(port)).getOrCreate()
    for key, value in (settings or {}).items():
        spark.conf.set(key, value)
    return spark


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("localhost", 0))
        return int(found.getsockname()[1])
