"""Tables with a changed file give rows or a typed error, and the process goes on.

`LANCELAKE_MUTANTS` sets how many files are changed, `LANCELAKE_SEED` which.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lancelake.storage import disk_sync
from tests.hostile import mutants
from tests.hostile.actions import attempt

MUTANTS = int(os.environ.get("LANCELAKE_MUTANTS", "80"))
SEED = int(os.environ.get("LANCELAKE_SEED", "20"))
# A check starts a process of its own.
CHECKED_ONE_OF = 40
PEAK_MB = 1_500
REPO = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, Path]]:
    """Return the tables of each family."""
    root = tmp_path_factory.mktemp("originals")
    with disk_sync.waiting(waits=False):
        mutants.build(root)
    return [(f, table) for f in mutants.FOLDERS for table in sorted((root / f).glob("*.lance"))]


class Worker:
    """A process that opens mutants until one of them ends it."""

    def __init__(self, errors: Path) -> None:
        self._errors = errors
        self._process: subprocess.Popen[str] | None = None

    def ask(self, **question: Any) -> list[str]:
        """Return what is wrong with the way a mutant was handled."""
        if self._process is None:
            self._process = self._started()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            status = self._process.wait()
            self._process = None
            said = self._errors.read_text(errors="replace")[-500:]
            return [f"the process ended with {status}: {said}"]
        answer = json.loads(line)
        large = f"took {answer['peak_mb']} MB"
        return [*answer["failures"], *[large] * (answer["peak_mb"] > PEAK_MB)]

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait()

    def _started(self) -> subprocess.Popen[str]:
        with self._errors.open("w") as errors:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.hostile.mutants"],
                cwd=REPO,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )


def test_what_is_tried_works_on_tables_that_are_in_order(
    originals: list[tuple[str, Path]], tmp_path: Path
) -> None:
    failures = []
    for family, table in originals:
        copy = Path(shutil.copytree(table, tmp_path / family / table.name))
        tried = mutants.actions_of(family, table.stem, random.Random(0))
        with disk_sync.waiting(waits=False):
            outcomes = [attempt(name, act, str(copy)) for name, act in tried.items()]
        failures += [f"{table.name}: {o.name}: {o.text}" for o in outcomes if o.text]
    assert failures == []


def test_changed_files_give_rows_or_a_typed_error(
    originals: list[tuple[str, Path]], tmp_path: Path
) -> None:
    worker = Worker(tmp_path / "errors")
    failures = []
    try:
        for number in range(MUTANTS):
            seed = SEED * 1_000_000 + number
            family, table = originals[number % len(originals)]
            found = worker.ask(
                family=family,
                table=str(table),
                seed=seed,
                work=str(tmp_path),
                checks=number % CHECKED_ONE_OF == 0,
            )
            failures += [f"{family} {table.name}, {seed}: {each}" for each in found]
    finally:
        worker.close()
    assert failures == []
