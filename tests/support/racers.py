"""Processes, of ours and of official releases, that change one table at the same time."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.official import interpreter, is_installed

OURS = "ours"

_REPO = Path(__file__).resolve().parents[2]
_SCRIPT = _REPO / "tests" / "support" / "row_racer.py"


@dataclass(frozen=True, slots=True)
class Ask:
    """Statements and their inputs."""

    code: str
    inputs: dict[str, Any]


class Racers:
    """Processes that begin a round at the same time, started when first needed."""

    def __init__(self) -> None:
        self._started: dict[str, list[subprocess.Popen[str]]] = {}

    def race(self, uri: str, crew: list[str], asks: list[Ask]) -> list[Any]:
        """Let each of a crew do its part; return what each says."""
        processes = self._crew(crew)
        for process, ask in zip(processes, asks, strict=True):
            assert process.stdin is not None
            asked = {"uri": uri, "code": ask.code, "inputs": ask.inputs}
            process.stdin.write(json.dumps(asked) + "\n")
        for process in processes:
            assert process.stdin is not None
            process.stdin.flush()
        return [json.loads(_line(process)) for process in processes]

    def close(self) -> None:
        """Let all processes end."""
        for process in itertools.chain(*self._started.values()):
            process.communicate()

    def _crew(self, crew: list[str]) -> list[subprocess.Popen[str]]:
        fresh = []
        for name, count in Counter(crew).items():
            started = self._started.setdefault(name, [])
            missing = [_start(name) for _ in range(count - len(started))]
            started += missing
            fresh += missing
        for process in fresh:
            _line(process)
        ready = {name: iter(started) for name, started in self._started.items()}
        return [next(ready[name]) for name in crew]


def _start(name: str) -> subprocess.Popen[str]:
    """Start a process of ours, or of an official release."""
    if name != OURS and not is_installed(name):
        pytest.skip(f"official release {name} is not installed under .interop/")
    python = sys.executable if name == OURS else str(interpreter(name))
    return subprocess.Popen(
        [python, str(_SCRIPT), "lancelake.pylance" if name == OURS else "lance"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{_REPO / 'src'}:{_REPO}"},
    )


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        assert process.stderr is not None
        raise AssertionError(process.stderr.read())
    return line
