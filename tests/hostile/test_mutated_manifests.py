"""Mutated manifests give rows or a typed error.

`LANCELAKE_MUTATIONS` sets how many manifests are tried, `LANCELAKE_SEED` which.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lancelake.storage import disk_sync
from tests.hostile import rich_table
from tests.hostile.actions import READS, WRITES, attempt
from tests.hostile.mutations import flip, mutate
from tests.support.table_surgery import FOOTER, LENGTH, edit_manifest, manifest_path

MUTATIONS = int(os.environ.get("LANCELAKE_MUTATIONS", "40"))
SEED = int(os.environ.get("LANCELAKE_SEED", "20"))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rich_table.build(tmp_path_factory.mktemp("mutated"))


@pytest.fixture
def restored(table: Path, tmp_path: Path) -> Callable[[], Path]:
    """Return a function that puts the table back as it was."""
    shutil.copytree(table, tmp_path / "original")

    def restore() -> Path:
        shutil.rmtree(table)
        shutil.copytree(tmp_path / "original", table)
        return table

    return restore


def test_what_is_tried_works_on_a_table_that_is_in_order(restored: Callable[[], Path]) -> None:
    uri = str(restored())
    outcomes = [attempt(name, act, uri) for name, act in (READS | WRITES).items()]
    assert [outcome for outcome in outcomes if outcome.text] == []


def test_changed_fields_give_rows_or_a_typed_error(restored: Callable[[], Path]) -> None:
    run(restored, change_fields)


def test_changed_bytes_give_rows_or_a_typed_error(restored: Callable[[], Path]) -> None:
    run(restored, change_bytes)


def run(restored: Callable[[], Path], tamper: Callable[[Path, random.Random], str]) -> None:
    """Tamper again and again, and report all manifests that ended in an untyped error."""
    failures = []
    for number in range(MUTATIONS):
        chance = random.Random(f"{SEED}-{number}")
        root = restored()
        done = tamper(root, chance)
        # Most users only read.
        actions = READS | WRITES if number % 4 == 0 else READS
        with disk_sync.waiting(waits=False):
            for name, act in actions.items():
                outcome = attempt(name, act, str(root))
                if not outcome.is_typed:
                    failures.append(f"{number}: {done}: {outcome.name}: {outcome.text}")
    assert failures == []


def change_fields(root: Path, chance: random.Random) -> str:
    done: list[str] = []
    edit_manifest(root, lambda message: done.append(mutate(message, chance)))
    return done[0]


def change_bytes(root: Path, chance: random.Random) -> str:
    path = manifest_path(root)
    data = path.read_bytes()
    position, *rest = FOOTER.unpack(data[-FOOTER.size :])
    body = flip(data[position + LENGTH.size : -FOOTER.size], chance)
    path.write_bytes(data[:position] + LENGTH.pack(len(body)) + body + FOOTER.pack(position, *rest))
    return "bytes"
