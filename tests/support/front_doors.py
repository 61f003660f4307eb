"""Programs of Spark in which no Python program of the user runs: shells, servers, their clients."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from lancelake.spark import jar

BIN = Path(pyspark.__file__).parent / "bin"
LIMIT_S = 900
_REPOSITORY = Path(__file__).parents[2]
_CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
_THRIFT = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"


@dataclass(frozen=True)
class Server:
    """A server that is running."""

    port: int
    pid: int


def settings(root: Path) -> dict[str, str]:
    """Return the settings that make Lance tables of a session, as `lancelake spark-conf` does."""
    return {
        "spark.jars": str(jar()),
        "spark.sql.extensions": "lancelake.LanceExtensions",
        "spark.sql.catalog.lance": "lancelake.LanceCatalog",
        "spark.lancelake.root": str(root / "tables"),
        "spark.lancelake.python": sys.executable,
        "spark.sql.warehouse.dir": str(root / "warehouse"),
        "spark.ui.enabled": "false",
    }


def run_sql(root: Path, script: str, **conf: str) -> subprocess.CompletedProcess[str]:
    """Run statements in `spark-sql`."""
    file = root / "script.sql"
    file.write_text(script, encoding="utf-8")
    given = {**settings(root), **conf}
    command = [BIN / "spark-sql", "--master", "local[2]", *_options(given), "-f", file]
    return _done(command, root)


def run_beeline(root: Path, port: int, script: str) -> subprocess.CompletedProcess[str]:
    """Run statements in beeline, through JDBC."""
    file = root / "beeline.sql"
    file.write_text(script, encoding="utf-8")
    options = ["-u", f"jdbc:hive2://127.0.0.1:{port}", "-n", "someone", "--outputformat=tsv2"]
    main = "org.apache.hive.beeline.BeeLine"
    return _done([BIN / "spark-class", main, *options, "-f", file], root)


def run_python(root: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a client program."""
    return _done([sys.executable, "-c", program, *arguments], root)


def run_module(root: Path, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a client program of the repository."""
    return _done([sys.executable, "-m", module, *arguments], root, PYTHONPATH=str(_REPOSITORY))


@contextmanager
def connect_server(root: Path, **conf: str) -> Iterator[Server]:
    """Run a Spark Connect server."""
    with _server(root, _CONNECT, "spark.connect.grpc.binding.port", conf) as server:
        yield server


@contextmanager
def thrift_server(root: Path) -> Iterator[Server]:
    """Run a Thrift server."""
    with _server(root, _THRIFT, "spark.hadoop.hive.server2.thrift.port", {}) as server:
        yield server


@contextmanager
def _server(root: Path, main: str, setting: str, conf: Mapping[str, str]) -> Iterator[Server]:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    given = {**settings(root), **conf, setting: str(port)}
    command = [BIN / "spark-submit", "--master", "local[2]", "--class", main]
    log = root / "server.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [*command, *_options(given), "spark-internal"],
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=root,
            env=_environment(),
        )
    try:
        _await(process, port, log)
        yield Server(port=port, pid=process.pid)
    finally:
        process.terminate()
        process.wait(LIMIT_S)


def _await(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end and process.poll() is None:
        with closing(socket.socket()) as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)  # until the server listens
    raise AssertionError(f"the server did not start:\n{log.read_text()}")


def _options(conf: Mapping[str, str]) -> list[str]:
    return [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]


def _environment() -> dict[str, str]:
    # As for users of the shells: nothing says which Python plans but the settings.
    return {k: v for k, v in os.environ.items() if not k.startswith("PYSPARK_")}


def _done(
    command: list[object], root: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
        cwd=root,
        env={**_environment(), **environment},
    )
