"""Benchmarks that run in a separate process, in an environment of their own where needed."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.measure import Comparison

_ENVIRONMENTS = Path(__file__).parent.parent / ".interop"
_RESULT, _SKIPPED = "result: ", "skipped: "


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """The reason why something was not measured."""

    reason: str


class MissingPeerError(Exception):
    """What a benchmark compares with cannot be had on this machine."""


def print_result(result: Comparison) -> None:
    """Hand a result to `measured` in another process."""
    print(_RESULT + json.dumps(asdict(result)), flush=True)


@contextlib.contextmanager
def skipping() -> Iterator[None]:
    """Report a missing peer as the reason to skip the rest."""
    try:
        yield
    except MissingPeerError as error:
        print(f"{_SKIPPED}{error}", flush=True)


def measured(
    module: str, environment: str | None = None, arguments: Sequence[object] = ()
) -> Iterator[Comparison | Skipped]:
    """Run a module of this folder and yield what it measured.

    `environment` is a folder of `.interop`; without one the module runs in this environment.
    """
    python = Path(sys.executable)
    if environment is not None:
        python = _ENVIRONMENTS / environment / "bin" / "python"
        if not python.exists():
            yield Skipped(
                reason=f"no environment {environment}: make .interop/{environment}/.synced"
            )
            return
    command = [str(python), "-m", f"benchmarks.{module}", *map(str, arguments)]
    env = {**os.environ, "PYSPARK_PYTHON": str(python), "LANCELAKE_FSYNC": "off"}
    with (
        tempfile.TemporaryFile("w+") as noise,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=noise, text=True, env=env) as run,
    ):
        for line in run.stdout or ():
            if line.startswith(_RESULT):
                yield Comparison(**json.loads(line.removeprefix(_RESULT)))
            elif line.startswith(_SKIPPED):
                yield Skipped(reason=line.removeprefix(_SKIPPED).strip())
        if run.wait():
            noise.seek(0)
            raise RuntimeError(noise.read()[-4000:])
