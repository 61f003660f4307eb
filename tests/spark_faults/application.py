"""Start a Spark application, communicate with it, and end all of its processes."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyspark

from tests.spark_faults.strikes import FOLDER, arm, struck

REPO = Path(__file__).resolve().parents[2]
CLUSTER = "local-cluster[2,1,1024]"
_TAIL = 4000


class DiedError(Exception):
    """The application is dead."""


class RefusedError(Exception):
    """The application could not do what it was asked."""


class Application:
    """One Spark application: a driver process, its JVM, its executors."""

    def __init__(self, folder: Path, master: str, **conf: object) -> None:
        """Start it; its files are kept below a folder."""
        self.strikes = folder / "strikes"
        self.strikes.mkdir(parents=True, exist_ok=True)
        self._errors = folder / "stderr"
        given = {"master": master, "root": str(folder / "warehouse"), "conf": conf}
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.spark_faults.driver", json.dumps(given)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=folder,
                env=environment(folder),
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        """Wait until it is ready."""
        self.answer()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End it."""
        self.close()

    def arm(self, point: str, victim: str, skips: int = 0) -> None:
        """Let something be killed during the next call."""
        arm(self.strikes, point, victim, skips)

    @property
    def struck(self) -> bool:
        """Whether it was."""
        return struck(self.strikes)

    def call(self, call: str, **arguments: object) -> Any:
        """Ask for something and wait until it is done."""
        self.ask(call, **arguments)
        return self.answer()

    def ask(self, call: str, **arguments: object) -> None:
        """Ask for something."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"call": call, **arguments}).encode() + b"\n")
        self._process.stdin.flush()

    def answer(self, patience_s: float = 600.0) -> Any:
        """Wait for the answer."""
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(patience_s):
                raise AssertionError(f"no answer: {self._tail()}")
        line = self._process.stdout.readline()
        if not line:
            raise DiedError(self._tail())
        found = json.loads(line)
        if "failed" in found:
            raise RefusedError(found["failed"])
        return found["done"]

    def close(self) -> None:
        """End every process that belongs to it."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()

    def _tail(self) -> str:
        return self._errors.read_text(errors="replace")[-_TAIL:]


def environment(folder: Path) -> dict[str, str]:
    """Return what every process of an application is given."""
    places = (Path(__file__).parent / "preload", REPO / "src", REPO)
    return {
        **os.environ,
        FOLDER: str(folder / "strikes"),
        "PYTHONPATH": os.pathsep.join(str(place) for place in places),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(_home(folder)),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def _home(folder: Path) -> Path:
    """Return Spark's files in a folder where executors may leave theirs."""
    home = folder / "spark"
    if not home.exists():
        home.mkdir()
        for found in Path(pyspark.__file__).parent.iterdir():
            if found.name != "work":
                home.joinpath(found.name).symlink_to(found)
    return home
