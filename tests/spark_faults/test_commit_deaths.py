"""Each batch of a stream is committed once when the committing process is killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from tests.spark_faults.application import environment
from tests.spark_faults.rounds import ROUNDS
from tests.spark_faults.strikes import arm, struck
from tests.spark_faults.verdict import ensure_done_once, version_of
from tests.spark_faults.works import WORKS, table_of
from tests.support.official import Official

POINTS = ("before", "during", "after")
STREAMS = ("stream of files", "stream merged by key")
NUMBERS = range(ROUNDS) if ROUNDS else (1,)


class Committer:
    """A process that forks one for every attempt to commit."""

    def __init__(self, folder: Path) -> None:
        """Start it."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark_faults.committer"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(folder),
            cwd=folder,
        )

    def run(self, place: Path, *, merges: bool) -> int:
        """Commit what is left of a stream; return how the attempt ended."""
        given = {
            "uri": str(table_of(place)),
            "checkpoint": str(place / "checkpoint"),
            "merges": merges,
            "strikes": str(place / "strikes"),
        }
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(given).encode() + b"\n")
        self._process.stdin.flush()
        return int(json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


@pytest.fixture(scope="module")
def committer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Committer]:
    """Return what commits, and dies."""
    found = Committer(tmp_path_factory.mktemp("committer"))
    yield found
    found.close()


@pytest.mark.parametrize(("number", "name", "point"), list(product(NUMBERS, STREAMS, POINTS)))
def test_a_batch_whose_commit_was_cut_off_is_committed_once(
    number: int, name: str, point: str, committer: Committer, place: Path, official_14: Official
) -> None:
    work = WORKS[name]
    table_of(place).parent.mkdir(parents=True)
    strikes = place / "strikes"
    strikes.mkdir()
    skips = number % work.commits
    arm(strikes, point, "committer", skips)
    merges = name == "stream merged by key"
    assert committer.run(place, merges=merges) == -signal.SIGKILL
    assert struck(strikes)
    assert version_of(place) == skips + (point == "after")
    assert committer.run(place, merges=merges) == 0
    ensure_done_once(work, place, official_14)
