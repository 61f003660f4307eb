"""Jobs are right while executors are killed again and again, each after its successor started."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

import lancelake.pylance as lance
from tests.spark_faults.application import Application
from tests.spark_faults.labours import LABOURS, ROWS, create, nearest_of_all, vector, vectors
from tests.spark_faults.strikes import EXECUTOR
from tests.spark_faults.verdict import ensure_sound
from tests.support.official import Official

KILLS = int(os.environ.get("LANCELAKE_EXECUTOR_KILLS", "1"))
INTERVAL_S = float(os.environ.get("LANCELAKE_EXECUTOR_INTERVAL_S", "20"))
_EXECUTORS = 2
_POLL_S = 0.2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an application."""
    return tmp_path_factory.mktemp("storm")


def test_jobs_are_right_while_executors_are_killed(
    folder: Path, place: Path, official_14: Official
) -> None:
    place.mkdir()
    uri = str(place / "t.lance")
    create(uri)
    application = Application(folder, f"local-cluster[{_EXECUTORS},1,1024]")
    try:
        with application, killing(folder) as killed:
            number = 0
            while number == 0 or len(killed) < KILLS:
                for name in LABOURS:
                    found = application.call("labour", uri=uri, name=name, number=number)
                    ensure_right(uri, name, number, found)
                number += 1
    finally:
        application.close()
    print(f"{len(killed)} executors killed in {number} rounds")
    assert killed
    assert official_14.read(Path(uri)).num_rows == ROWS * number
    ensure_sound(Path(uri))


@contextmanager
def killing(folder: Path) -> Iterator[list[int]]:
    """Kill an executor at intervals that begin when all executors have been started."""
    over, killed = threading.Event(), list[int]()

    def kill() -> None:
        chance = Random(1)
        while len(killed) < KILLS and not over.wait(_POLL_S):
            if len(executors(folder)) < _EXECUTORS or (killed and over.wait(INTERVAL_S)):
                continue
            for victim in chance.sample(executors(folder), 1):
                with suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
                killed.append(victim)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def executors(folder: Path) -> list[int]:
    """Return the executors of the application in a folder."""
    found = []
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            if process.name.isdigit():
                command = (process / "cmdline").read_text()
                if EXECUTOR in command and str(folder) in command and "bash" not in command:
                    found.append(int(process.name))
    return found


def ensure_right(uri: str, name: str, number: int, found: Any) -> None:
    """The table has the rows of the model, and a search finds the nearest of them."""
    ds = lance.dataset(uri)
    count = ROWS * (number + 1)
    if name == "nearest":
        query, rows = zip(*found, strict=True)
        mine = vectors([ROWS * number + q for q in query])
        distances = ((vectors(rows) - mine) ** 2).sum(axis=1)
        told = {(q, round(float(d), 5)) for q, d in zip(query, distances, strict=True)}
        assert told == nearest_of_all(count, number)
        return
    merges = number + (name != "append")
    rows = sorted(ds.to_table().to_pylist(), key=lambda row: row["id"])
    assert [row["id"] for row in rows] == list(range(count))
    for row in rows:
        first = row["id"] // ROWS
        assert row["n"] == (merges - first if row["id"] % 3 == 0 else 0)
        assert row["v"] == pytest.approx(vector(row["id"]), abs=1e-6)
    if name == "index":
        assert {i.num_rows_indexed for i in ds.describe_indices()} == {count}
        assert ds.to_table(filter=f"id >= {count - 5}").num_rows == 5
    if name == "compact":
        assert len(ds.get_fragments()) <= 2
