"""Does each batch of a stream land once when the process that commits it is killed?"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
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


def run(place: Path, *, merges: bool) -> int:
    """Run a process that commits what is left of the stream; return how it ended."""
    given = {
        "uri": str(table_of(place)),
        "checkpoint": str(place / "checkpoint"),
        "merges": merges,
    }
    command = [sys.executable, "-m", "tests.spark_faults.committer", json.dumps(given)]
    return subprocess.run(command, env=environment(place), cwd=place, check=False).returncode


@pytest.mark.parametrize(("number", "name", "point"), list(product(NUMBERS, STREAMS, POINTS)))
def test_a_batch_whose_commit_was_cut_off_lands_once(
    number: int, name: str, point: str, place: Path, official_14: Official
) -> None:
    work = WORKS[name]
    table_of(place).parent.mkdir(parents=True)
    strikes = place / "strikes"
    strikes.mkdir()
    skips = number % work.commits
    arm(strikes, point, "committer", skips)
    merges = name == "stream merged by key"
    assert run(place, merges=merges) == -signal.SIGKILL
    assert struck(strikes)
    assert version_of(place) == skips + (point == "after")
    assert run(place, merges=merges) == 0
    ensure_done_once(work, place, official_14)
