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
from subprocess import CompletedProcess

import pyspark
import pytest

from lancelake.spark.jars import DRIVER_CLASS_PATH, connector_settings, jar

BIN = Path(pyspark.__file__).parent / "bin"
LIMIT_S = 900
_REPOSITORY = Path(__file__).parents[2]
_CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
_DEPLOY = "org.apache.spark.deploy"
_THRIFT = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"


@dataclass(frozen=True)
class Server:
    """A server that is running."""

    port: int
    pid: int


def settings(root: Path) -> dict[str, str]:
    """Return the settings that make Lance tables of a session, as `lancelake spark-conf` does."""
    return {
        **connector_settings(),
        DRIVER_CLASS_PATH: str(jar()),
        "spark.lancelake.root": str(root / "tables"),
        "spark.lancelake.python": sys.executable,
        "spark.sql.warehouse.dir": str(root / "warehouse"),
        "spark.ui.enabled": "false",
    }


def run_sql(root: Path, script: str, **conf: str) -> CompletedProcess[str]:
    """Run statements in `spark-sql`."""
    file = root / "script.sql"
    file.write_text(script, encoding="utf-8")
    given = {"spark.master": "local[2]", **settings(root), **conf}
    command = [BIN / "spark-sql", *_options(given), "-f", file]
    return _done(command, root)


def run_class(root: Path, jar_of_class: Path, name: str) -> CompletedProcess[str]:
    """Run a Java class by `spark-submit`."""
    options = _options(settings(root))
    command = [BIN / "spark-submit", "--master", "local[2]", "--class", name, *options]
    return _done([*command, jar_of_class], root)


def run_shell(root: Path, script: str) -> CompletedProcess[str]:
    """Run a Scala script in `spark-shell`."""
    command = [BIN / "spark-shell", "--master", "local[2]", *_options(settings(root))]
    return _done(command, root, script)


def run_beeline(root: Path, port: int, script: str) -> CompletedProcess[str]:
    """Run statements in beeline, through JDBC."""
    file = root / "beeline.sql"
    file.write_text(script, encoding="utf-8")
    options = [
        "-u",
        f"jdbc:hive2://127.0.0.1:{port}",
        "-n",
        "someone",
        "--outputformat=tsv2",
        "--showHeader=false",
    ]
    main = "org.apache.hive.beeline.BeeLine"
    return _done([BIN / "spark-class", main, *options, "-f", file], root)


def run_python(root: Path, program: str, *arguments: str) -> CompletedProcess[str]:
    """Run a client program."""
    return _done([sys.executable, "-c", program, *arguments], root)


def run_module(root: Path, module: str, *arguments: str) -> CompletedProcess[str]:
    """Run a client program of the repository."""
    return _done([sys.executable, "-m", module, *arguments], root, PYTHONPATH=str(_REPOSITORY))


def run_pipelines(project: Path, *arguments: str, **environment: str) -> CompletedProcess[str]:
    """Run a project of `spark-pipelines`, on a server of its own if the arguments name none."""
    return _done(
        [BIN / "spark-pipelines", "run", *arguments],
        project,
        PYSPARK_PYTHON=sys.executable,
        **environment,
    )


def run_client(root: Path, program: str, port: int) -> CompletedProcess[str]:
    """Run a client program where only `pyspark-client` and PyHive are installed."""
    python = _REPOSITORY / ".interop/client/bin/python"
    if not python.exists():
        pytest.skip("the environment of clients is not installed under .interop/")
    return _done([python, Path(__file__).parent / program, port], root, PYTHONSAFEPATH="1")


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
def standalone_cluster(root: Path) -> Iterator[str]:
    """Run a master with one worker, and return the URL of the master."""
    here = ["--host", "127.0.0.1", "--webui-port", "0"]
    port = _free_port()
    url = f"spark://127.0.0.1:{port}"
    master = [BIN / "spark-class", f"{_DEPLOY}.master.Master", *here, "--port", port]
    worker = [BIN / "spark-class", f"{_DEPLOY}.worker.Worker", *here, "--cores", 2, "--memory"]
    with _running(root, "master", master) as first:
        _await(first, port, root / "master.log")
        with _running(root, "worker", [*worker, "1g", "--work-dir", root / "work", url]):
            yield url


@contextmanager
def _server(root: Path, main: str, setting: str, conf: Mapping[str, str]) -> Iterator[Server]:
    port = _free_port()
    given = {**settings(root), **conf, setting: str(port)}
    command = [BIN / "spark-submit", "--master", "local[2]", "--class", main, *_options(given)]
    with _running(root, "server", [*command, "spark-internal"]) as process:
        _await(process, port, root / "server.log")
        yield Server(port=port, pid=process.pid)


@contextmanager
def _running(root: Path, name: str, command: list[object]) -> Iterator[subprocess.Popen[bytes]]:
    with (root / f"{name}.log").open("w") as output:
        process = subprocess.Popen(
            [str(part) for part in command],
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=root,
            env=_environment(),
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(LIMIT_S)


def _free_port() -> int:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


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
    command: list[object], root: Path, typed: str = "", **environment: str
) -> CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        input=typed,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
        cwd=root,
        env={**_environment(), **environment},
    )
