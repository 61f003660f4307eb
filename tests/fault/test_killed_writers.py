"""Killed writers leave a consistent table, with their last operation complete or absent."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

import lancelake.pylance as lance
from lancelake.errors import TableNotFoundError
from lancelake.maintenance.check.finding import Severity
from lancelake.maintenance.check.run import check
from lancelake.storage.location import Location
from tests.support.doomed_writer import do
from tests.support.official import RELEASES, OfficialPool, is_installed

REPO = Path(__file__).resolve().parents[2]
SCRIPT = REPO / "tests" / "support" / "doomed_writer.py"
KILLS = int(os.environ.get("LANCELAKE_KILLS", "20"))
# Accesses to files of the table that one operation makes, more or less.
ACCESSES = 16

Operation = dict[str, Any]


@dataclass(frozen=True)
class Content:
    """What a table holds, as far as the operations change it."""

    rows: dict[int, int] = field(default_factory=dict)
    config: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    version: int = 0

    def after(self, operation: Operation) -> Content:
        """Return what it holds after one more operation."""
        made = replace(self, version=self.version + 1)
        match operation:
            case {"kind": "create" | "overwrite", "ids": ids}:
                return replace(made, rows=dict.fromkeys(ids, 0))
            case {"kind": "append", "ids": ids}:
                return replace(made, rows=self.rows | dict.fromkeys(ids, 0))
            case {"kind": "delete", "ids": ids}:
                return replace(made, rows={i: v for i, v in self.rows.items() if i not in ids})
            case {"kind": "update", "ids": ids, "value": value}:
                return replace(made, rows=self.rows | dict.fromkeys(ids, value))
            case {"kind": "config", "key": key}:
                return replace(made, config=self.config | {key})
            case {"kind": "tag", "name": name}:
                return replace(self, tags=self.tags | {name})
        raise AssertionError(operation)


def plan(chance: random.Random, content: Content, count: int) -> list[Operation]:
    """Draw operations that make sense one after another."""
    found: list[Operation] = []
    for _ in range(count):
        operation = _draw(chance, content)
        found.append(operation)
        content = content.after(operation)
    return found


def _draw(chance: random.Random, content: Content) -> Operation:
    first = chance.randrange(1 << 40)
    new = list(range(first, first + 5))
    if not content.version:
        return {"kind": "create", "ids": new}
    kinds = ["append", "append", "delete", "update", "config", "tag", "overwrite"]
    kind = chance.choice(kinds if len(content.rows) > 6 else ["append"])
    some = chance.sample(sorted(content.rows), min(3, len(content.rows)))
    extra: dict[str, Operation] = {
        "append": {"ids": new},
        "overwrite": {"ids": [*new, *(i + 10 for i in new)]},
        "delete": {"ids": some},
        "update": {"ids": some, "value": first},
        "config": {"key": f"key-{first}"},
        "tag": {"name": f"tag-{first}"},
    }
    return {"kind": kind, **extra[kind]}


def observed(uri: str) -> Content:
    """Return what the table holds."""
    try:
        ds = lance.dataset(uri)
    except TableNotFoundError:
        return Content()
    rows = ds.to_table()
    ids = rows["id"].to_pylist()
    assert len(ids) == len(set(ids))
    return Content(
        rows=dict(zip(ids, rows["value"].to_pylist(), strict=True)),
        config=frozenset(ds.config()),
        tags=frozenset(ds.tags.list()),
        version=ds.version,
    )


def run_until_killed(
    uri: str, operations: list[Operation], *, dies_at: int | None, lines: int | None
) -> tuple[int, bool]:
    """Run a writer that dies; return how many operations it finished, and whether it died."""
    given = json.dumps({"uri": uri, "operations": operations, "dies_at": dies_at})
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), given],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{REPO / 'src'}:{REPO}"},
    )
    assert process.stdout is not None
    heard = [process.stdout.readline() for _ in range(lines or 0)]
    if lines is not None:
        process.kill()
    rest, errors = process.communicate()
    assert process.returncode in (0, -signal.SIGKILL), errors
    done = sum("done" in line for line in [*heard, *rest.splitlines()])
    return done, process.returncode != 0


def ensure_sound(uri: str, content: Content, officials: OfficialPool, release: str) -> None:
    """Neither we nor an official release find anything wrong, and both see the same rows."""
    if not content.version:
        return
    found = list(check(Location.parse(uri), data=True, versions="all"))
    assert [f for f in found if f.severity is Severity.ERROR] == []
    if is_installed(release):
        body = officials(release).run(uri, JUDGE)
        assert body == {"version": content.version, "ids": sorted(content.rows)}


JUDGE = """
ds = lance.dataset(uri)
ds.validate()
ids = ds.to_table(columns=["id"])["id"].to_pylist()
result = {"version": ds.version, "ids": sorted(ids)}
"""


@pytest.mark.parametrize("number", range(KILLS))
def test_a_killed_writer_leaves_the_old_or_the_new_version(
    number: int, officials: OfficialPool, tmp_path: Path
) -> None:
    chance = random.Random(number)
    uri = str(tmp_path / "table.lance")
    operations = plan(chance, Content(), 6)
    is_aimed = number % 2 == 0
    done, died = run_until_killed(
        uri,
        operations,
        dies_at=chance.randrange(1, ACCESSES * len(operations)) if is_aimed else None,
        lines=None if is_aimed else chance.randrange(1, 2 * len(operations)),
    )
    before = reduce(Content.after, operations[:done], Content())
    found = observed(uri)
    pending = operations[done] if done < len(operations) else None
    after = before if pending is None else before.after(pending)
    assert died or pending is None
    assert found in (before, after)
    ensure_sound(uri, found, officials, RELEASES[number // 2 % len(RELEASES)])
    if pending is not None and found == before:
        do(uri, pending)
    assert observed(uri) == after
    ensure_sound(uri, after, officials, RELEASES[number // 2 % len(RELEASES)])
