"""A signal handler that raises during a call: its exception or the whole result, nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.fault.interrupts import CALLS

# The whole loop has 2,000: see `python -m tests.fault.interrupts --help`.
TIMES = int(os.environ.get("LANCELAKE_INTERRUPTS", "6"))
ROOT = Path(__file__).parents[2]


class Interrupted:
    """A process that interrupts calls; the one after a call that ended it starts another."""

    def __init__(self, fragments: int, folder: Path) -> None:
        self._fragments = fragments
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None

    def call(self, name: str) -> list[str]:
        """Interrupt a call, and return what was wrong."""
        if self._process is None:
            self._process = self._started()
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.write(f"{name}\n")
            process.stdin.flush()
        answer = process.stdout.readline()
        if answer:
            wrong: list[str] = json.loads(answer)
            return wrong
        self._process = None
        printed = self._errors.read_text(encoding="utf-8", errors="replace")
        return [f"the process ended with {_ended(process)}:\n{printed}"]

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            _ended(self._process)

    @property
    def _errors(self) -> Path:
        return self._folder / "stderr.txt"

    def _started(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.fault.interrupts", "--asked"]
        command += ["--times", str(TIMES)]
        command += ["--seed", str(self._fragments), "--fragments", str(self._fragments)]
        with self._errors.open("wb") as errors:
            return subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, "TMPDIR": str(self._folder)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )


def _ended(process: subprocess.Popen[str]) -> int:
    with suppress(BrokenPipeError), process:
        pass
    return process.returncode


@pytest.fixture(scope="module", params=[1, 10])
def interrupted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Interrupted]:
    process = Interrupted(request.param, tmp_path_factory.mktemp("interrupts"))
    yield process
    process.close()


@pytest.mark.parametrize("name", CALLS)
def test_an_interrupted_call_raises_what_the_handler_raises(
    interrupted: Interrupted, name: str
) -> None:
    assert interrupted.call(name) == []


def test_a_call_that_ends_the_process_is_reported_and_the_next_one_is_made(tmp_path: Path) -> None:
    process = Interrupted(1, tmp_path)
    (reported,) = process.call("unknown")
    wrong = process.call("take")
    process.close()
    assert ("KeyError: 'unknown'" in reported, wrong) == (True, [])
