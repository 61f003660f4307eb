"""A small cluster whose workers have addresses of their own: only then does Spark speculate."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tests.spark_faults.application import environment

_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_HOST = "127.0.0.1"
_WORKERS = ("127.0.0.1", "127.0.0.2")


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """Start a master and two workers of one core; return the URL for applications."""
    with socket.socket() as free:
        free.bind((_HOST, 0))
        port = free.getsockname()[1]
    url = f"spark://{_HOST}:{port}"
    with ExitStack() as stack:
        master = [_MASTER, "--host", _HOST, "--port", str(port), "--webui-port", "0"]
        stack.callback(_ended, _started(folder, _HOST, master))
        for host in _WORKERS:
            worker = [_WORKER, "--host", host, "--webui-port", "0", "--cores", "1"]
            worker += ["--memory", "1g", "--work-dir", str(folder / "executors"), url]
            stack.callback(_ended, _started(folder, host, worker))
        yield url


def _started(folder: Path, host: str, arguments: list[str]) -> subprocess.Popen[bytes]:
    settings = environment(folder)
    program = Path(settings["SPARK_HOME"]) / "bin" / "spark-class"
    return subprocess.Popen(
        [str(program), *arguments],
        env={**settings, "SPARK_LOCAL_IP": host},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _ended(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
