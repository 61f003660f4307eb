"""Concurrent merges of two Spark applications and an official writer lose or duplicate no rows."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from tests.spark_faults.application import Application
from tests.spark_faults.rounds import ROUNDS
from tests.spark_faults.verdict import ensure_sound
from tests.support.official import Official, interpreter

RELEASE = "14.0.2"
RACER = Path(__file__).parents[1] / "support" / "row_racer.py"
SHARED = [0, 1, 2]
STEPS = 4
PATIENCE_S = 480.0
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False).with_metadata(
            {"lance-schema:unenforced-primary-key": "true"}
        ),
        pa.field("n", pa.int64()),
    ]
)
# What official Lance cannot add to by itself is read, and written unless it changed meanwhile. It
# is the fastest of the three, so each of its steps waits for some commits of the others.
INCREMENT = """
import time
until, result = time.monotonic() + patience_s, 0
for number, keys in enumerate(steps):
    while lance.dataset(uri).version < 1 + 2 * number and time.monotonic() < until:
        time.sleep(0.05)
    while True:
        ds = lance.dataset(uri)
        old = ds.to_table(filter=f"id in ({', '.join(map(str, keys))})").to_pylist()
        known = {row["id"]: row["n"] for row in old}
        rows = pa.table([keys, [known.get(key, 0) + 1 for key in keys]], schema=ds.schema)
        merge = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        try:
            merge.conflict_retries(0).execute(rows)
            break
        except (OSError, RuntimeError) as error:
            if "conflict" not in str(error).lower() and "contention" not in str(error).lower():
                raise
            if time.monotonic() > until:
                raise
            result += 1
"""


class OfficialRacer:
    """A process of an official release."""

    def __init__(self) -> None:
        """Start it."""
        self._process = subprocess.Popen(
            [str(interpreter(RELEASE)), str(RACER), "lance"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._heard()

    def ask(self, uri: str, code: str, **inputs: object) -> None:
        """Ask it to run statements."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"uri": uri, "code": code, "inputs": inputs}) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """Return what came of them."""
        found = self._heard()
        assert "done" in found, found
        return found["done"]

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()

    def _heard(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())


@pytest.fixture(scope="module")
def racers(
    tmp_path_factory: pytest.TempPathFactory, official_14: Official
) -> Iterator[tuple[Application, Application, OfficialRacer]]:
    """Return two applications and a process of an official release."""
    with ExitStack() as stack:
        apps = [Application(tmp_path_factory.mktemp("racer"), "local[1]") for _ in range(2)]
        for app in apps:
            stack.callback(app.close)
        racer = OfficialRacer()
        stack.callback(racer.close)
        for app in apps:
            app.answer()
        yield apps[0], apps[1], racer


def duplicates(uri: str) -> list[tuple[int, str, list[int]]]:
    """Return each version that has a key twice, with its writer and those keys."""
    found = []
    for version in lance.dataset(uri).versions():
        ds = lance.dataset(uri, version=version["version"])
        counts = Counter(ds.to_table(columns=["id"])["id"].to_pylist())
        twice = sorted(key for key, count in counts.items() if count > 1)
        if twice:
            found.append((ds.version, str(version["metadata"]), twice))
    return found


@pytest.mark.parametrize("number", range(max(ROUNDS, 1)))
def test_merges_by_key_at_once_lose_no_update_and_double_no_key(
    number: int,
    racers: tuple[Application, Application, OfficialRacer],
    tmp_table: str,
    official_14: Official,
) -> None:
    first, second, official = racers
    lance.write_dataset(
        pa.table([SHARED, [0] * len(SHARED)], schema=SCHEMA),
        tmp_table,
        enable_stable_row_ids=number % 2 == 0,
    )
    steps = [[*SHARED, 100 + step] for step in range(STEPS)]
    for app in (first, second):
        app.ask("increment", uri=tmp_table, steps=steps, patience_s=PATIENCE_S)
    official.ask(tmp_table, INCREMENT, steps=steps, patience_s=PATIENCE_S)
    refused = [first.answer(), second.answer(), official.answer()]
    print(f"refused {refused}, versions {lance.dataset(tmp_table).version}")
    assert duplicates(tmp_table) == []
    found = official_14.read(tmp_table)
    told = Counter(key for keys in steps for key in keys)
    assert dict(zip(found["id"].to_pylist(), found["n"].to_pylist(), strict=True)) == {
        key: 3 * count for key, count in told.items()
    }
    ensure_sound(Path(tmp_table))
