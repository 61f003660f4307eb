"""Clients of servers that have neither this package nor Spark: only `pyspark-client`, or PyHive."""

from __future__ import annotations

from pathlib import Path

import lancelake
from tests.support.front_doors import connect_server, run_client, thrift_server


def test_spark_connect(tmp_path: Path) -> None:
    with connect_server(tmp_path) as server:
        done = run_client(tmp_path, "pyspark_client.py", server.port)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "the client has no package of ours",
        "rows|110|20",
        "by path|10",
        "old version|10|20",
        "pushdown|id IS NOT NULL, id < 5",
        "merged|21|119",
        "changed|110|12",
        "tagged|100",
        "stream by name|21|1000",
        "stream by path|20",
    ]
    assert lancelake.dataset(tmp_path / "tables/db/t.lance").count_rows() == 110


def test_a_thrift_server(tmp_path: Path) -> None:
    with thrift_server(tmp_path) as server:
        done = run_client(tmp_path, "jdbc_client.py", server.port)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["7|m", "5000|n", "901", "5000", "True"]
    assert lancelake.dataset(tmp_path / "tables/db/t.lance").count_rows() == 901
