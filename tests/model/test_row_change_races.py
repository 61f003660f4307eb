"""Merges and updates with any concurrent commit keep keys and values."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, count, permutations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.clock import SystemIds
from lancelake.commit.snapshot import Latest, Snapshot, open_snapshot
from lancelake.storage import disk_sync, location
from lancelake.storage.local import LocalStore
from lancelake.storage.location import Location, Session
from lancelake.storage.store import ObjectStore
from lancelake.table.merge.clauses import InsertAll, MergeSpec, UpdateAll
from lancelake.table.merge.run import merge
from lancelake.table.publish import CommitChoices
from lancelake.table.rows import delete, update
from tests.support.failing_store import InterceptedStore
from tests.support.scheduled_store import Outcomes, Schedule, Scheduler
from tests.support.set_clock import ManualClock

# How the newest version is looked for on local disk, and how a version is published.
POINTS = frozenset({"list_names", "create"})
# Of three writers only the order in which they publish is gone through.
PUBLISHING = frozenset({"create"})
UPSERT = MergeSpec(on=("id",), matched=(UpdateAll(),), not_matched=(InsertAll(),))
FIRST = {key: key for key in range(1, 7)}

_NUMBERS = count()

Rows = Counter[tuple[int, int]]


@dataclass(frozen=True, kw_only=True)
class Work:
    """A change of rows, and what it does to a table when nobody else is there."""

    carry_out: Callable[[Snapshot, CommitChoices], object]
    alone: Callable[[Rows], Rows]
    inserts: frozenset[int] = frozenset()
    """Keys that a merge adds when they are not there."""

    appends: frozenset[int] = frozenset()


def _upsert(**values: int) -> Work:
    by_key = {int(name.removeprefix("k")): value for name, value in values.items()}

    def alone(rows: Rows) -> Rows:
        kept = Counter({row: n for row, n in rows.items() if row[0] not in by_key})
        old = Counter(key for (key, _), n in rows.items() for _ in range(n) if key in by_key)
        return kept + Counter({(key, v): max(old[key], 1) for key, v in by_key.items()})

    return Work(
        carry_out=lambda base, choices: merge(
            base, _table(by_key).to_reader(), UPSERT, choices=choices
        ),
        alone=alone,
        inserts=frozenset(by_key),
    )


def _append(key: int) -> Work:
    def carry_out(base: Snapshot, _: CommitChoices) -> object:
        return lance.write_dataset(_table({key: -key}), base.location.uri, mode="append")

    return Work(
        carry_out=carry_out,
        alone=lambda rows: rows + Counter({(key, -key): 1}),
        appends=frozenset({key}),
    )


def _delete(key: int) -> Work:
    return Work(
        carry_out=lambda base, choices: delete(base, f"id = {key}", choices=choices),
        alone=lambda rows: Counter({row: n for row, n in rows.items() if row[0] != key}),
    )


def _update(key: int) -> Work:
    def alone(rows: Rows) -> Rows:
        found: Rows = Counter()
        for (each, value), n in rows.items():
            found[each, value + 1000 if each == key else value] += n
        return found

    return Work(
        carry_out=lambda base, choices: update(
            base, {"v": "v + 1000"}, f"id = {key}", choices=choices
        ),
        alone=alone,
    )


WORKS = {
    "upsert 2, 10, 11": _upsert(k2=102, k10=110, k11=111),
    "upsert 2, 10": _upsert(k2=202, k10=210),
    "upsert 4, 20": _upsert(k4=304, k20=320),
    "append 10": _append(10),
    "append 50": _append(50),
    "delete 2": _delete(2),
    "delete 5": _delete(5),
    "update 2": _update(2),
    "update 4": _update(4),
}
MINE = ("upsert 2, 10, 11", "update 2")
PAIRS = [(mine, theirs) for mine in MINE for theirs in WORKS]
TRIPLES = [
    ("upsert 2, 10, 11", *others)
    for others in combinations(("upsert 2, 10", "append 10", "append 50", "delete 2"), 2)
]


@pytest.fixture(scope="module", params=[False, True], ids=["addresses", "stable ids"])
def kept(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a table of two fragments."""
    uri = tmp_path_factory.mktemp("races") / "kept.lance"
    lance.write_dataset(
        _table(FIRST), uri, max_rows_per_file=3, enable_stable_row_ids=request.param
    )
    return uri


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Machines do not stop here."""
    with disk_sync.waiting(waits=False):
        yield


@pytest.mark.parametrize(("mine", "theirs"), PAIRS)
def test_every_order_of_two_changes_is_like_one_after_the_other(
    kept: Path, mine: str, theirs: str
) -> None:
    for place, done in _every_run(kept, {"one": WORKS[mine], "other": WORKS[theirs]}):
        _ensure_sound(place, [WORKS[mine], WORKS[theirs]], done)


@pytest.mark.parametrize("names", TRIPLES, ids=" + ".join)
def test_every_order_of_three_changes_is_like_one_after_the_other(
    kept: Path, names: tuple[str, ...]
) -> None:
    works = {name: WORKS[name] for name in names}
    for place, done in _every_run(kept, works, points=PUBLISHING):
        _ensure_sound(place, list(works.values()), done)


def _every_run(
    kept: Path, works: Mapping[str, Work], *, points: frozenset[str] = POINTS
) -> Iterator[tuple[Path, Outcomes[tuple[Work, int]]]]:
    """Run works in every order of the calls that can see each other."""
    choices: list[int] | None = []
    while choices is not None:
        # A place of its own: files never change, so what was read of them is remembered.
        place = kept.with_name(f"{next(_NUMBERS)}.lance")
        shutil.copytree(kept, place)
        schedule = Schedule(choices)
        yield place, _run(place, works, Scheduler(schedule, points=points))
        shutil.rmtree(place)
        choices = schedule.next_choices()


def _run(
    place: Path, works: Mapping[str, Work], scheduler: Scheduler
) -> Outcomes[tuple[Work, int]]:
    seats = threading.local()

    def store(uri: str) -> ObjectStore:
        return InterceptedStore(LocalStore(uri), around)

    def around(call: str, path: str, carry_out: Callable[[], Any]) -> Any:
        # Only the writer's own thread looks for versions and publishes them.
        wait = getattr(seats, "around", None)
        return carry_out() if wait is None else wait(call, path, carry_out)

    def writer(work: Work, base: Snapshot, seed: int) -> Callable[[Any], Any]:
        session = Session(clock=ManualClock(), ids=SystemIds(seed))
        mine = replace(base, location=replace(base.location, session=session))

        def carry_out(view: InterceptedStore) -> tuple[Work, int]:
            seats.around = view._around
            done: Any = work.carry_out(mine, CommitChoices())
            return work, done.snapshot.version if hasattr(done, "snapshot") else done.version

        return carry_out

    base = open_snapshot(Location.parse(str(place)), Latest())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(location, "LocalStore", store)
        writers = {
            name: writer(work, base, seed) for seed, (name, work) in enumerate(works.items())
        }
        return scheduler.run(writers, LocalStore(str(place)))


def _ensure_sound(place: Path, works: list[Work], done: Outcomes[tuple[Work, int]]) -> None:
    assert done.raised == {}
    found = lance.dataset(place).to_table().to_pylist()
    rows = Counter((row["id"], row["v"]) for row in found)
    assert rows in [_one_by_one(order) for order in permutations(works)]
    _ensure_no_key_twice(rows, done)


def _ensure_no_key_twice(rows: Rows, done: Outcomes[tuple[Work, int]]) -> None:
    """A merge adds no key that is there; only an append after it may."""
    landed = sorted(done.returned.values(), key=lambda each: each[1])
    keys = Counter(key for (key, _), n in rows.items() for _ in range(n))
    for key, times in keys.items():
        merges = [v for work, v in landed if key in work.inserts]
        appended = [v for work, v in landed if key in work.appends]
        later = sum(v > min(merges, default=0) for v in appended) if merges else len(appended)
        assert times <= 1 + later, f"key {key} is there {times} times"


def _one_by_one(order: tuple[Work, ...]) -> Rows:
    rows: Rows = Counter(dict.fromkeys(FIRST.items(), 1))
    for work in order:
        rows = work.alone(rows)
    return +rows


def _table(values: Mapping[int, int]) -> pa.Table:
    return pa.table(
        {"id": pa.array(list(values), pa.int64()), "v": pa.array(list(values.values()), pa.int64())}
    )
