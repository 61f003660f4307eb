"""A cleanup removes exactly what its policy allows, for any history."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from lancelake.clock import SystemClock
from lancelake.engine.port import LocalEngine
from lancelake.maintenance.check.finding import Severity
from lancelake.maintenance.check.run import check
from lancelake.maintenance.cleanup import run
from lancelake.maintenance.cleanup.plan import CleanupPolicy, PlannedCleanup, make_plan
from lancelake.maintenance.cleanup.run import CleanupReport, clean_up
from lancelake.maintenance.reachable import Family
from lancelake.storage import disk_sync
from lancelake.storage.location import Location, Session
from tests.support import cleanup_oracle as oracle
from tests.support.cleanup_oracle import DETACHED, Ask
from tests.support.random_lives import REUSES, Life
from tests.support.set_clock import ManualClock

HISTORIES = range(60)
STEPS = 12
LATER_NS = 8 * 86_400 * 10**9


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Nothing crashes here."""
    with disk_sync.waiting(waits=False):
        yield


def drawn_policy(life: Life, root: Path, now_ns: int) -> tuple[CleanupPolicy, Ask]:
    """Draw a policy; ages are drawn so that some versions are older."""
    chance = life.chance
    own = oracle.own_versions(root)
    cut = chance.choice([v.time_ns for v in own] + [now_ns])
    older_than = chance.choice([None, timedelta(microseconds=(now_ns - cut) // 1000)])
    retain = chance.choice([None, None, 1, 2, 5])
    versions = None
    if chance.random() < 0.2:
        versions = frozenset(v.number for v in own if chance.random() < 0.5) | {1}
    policy = CleanupPolicy(
        older_than=older_than,
        retain_versions=retain,
        versions=versions,
        delete_unverified=chance.random() < 0.5,
        error_if_tagged_old_versions=False,
    )
    ask = Ask(
        before_ns=policy.before_ns(now_ns),
        retain=retain,
        versions=versions,
        unverified=policy.delete_unverified,
        now_ns=now_ns,
    )
    return policy, ask


def files(top: Path) -> set[Path]:
    return {path for path in top.rglob("*") if path.is_file()}


def cleaned(root: Path, policy: CleanupPolicy, now_ns: int) -> CleanupReport:
    return clean_up(at(root, now_ns), policy, engine=LocalEngine(parallelism=1))


def at(root: Path, now_ns: int) -> Location:
    """Return a table at a time."""
    return Location.parse(root, session=Session(clock=ManualClock(ns=now_ns)))


def ensure_sound(life: Life) -> None:
    found = check(Location.parse(life.top), data=True, versions="all")
    assert [f for f in found if f.severity is Severity.ERROR] == []


@pytest.mark.parametrize("seed", HISTORIES)
def test_exactly_what_nothing_needs_is_removed(seed: int, tmp_path: Path) -> None:
    life = Life(tmp_path / "table.lance", seed)
    life.live(STEPS)
    for _ in range(2):
        branch = life.chance.choice(life.branches)
        root = life.root(branch)
        now_ns = SystemClock().now_ns() + life.chance.choice([0, LATER_NS])
        policy, ask = drawn_policy(life, root, now_ns)
        before, rows = files(life.top), life.rows()
        expected = oracle.left(life.top, root, branch, ask)
        dry = clean_up(at(root, now_ns), policy, dry_run=True)
        assert files(life.top) == before
        report = cleaned(root, policy, now_ns)
        assert files(life.top) == expected
        assert (report.versions, report.totals) == (dry.versions, dry.totals)
        assert report.files_removed == len(before - expected)
        after = life.rows()
        assert after == {key: table for key, table in rows.items() if key in after}
        ensure_sound(life)
        life.live(2)


@contextmanager
def interleaved(life: Life, steps: random.Random) -> Iterator[None]:
    """Let others change the table after the plan is made, and after manifests are gone."""
    load = Family.load

    def planned(*args: object) -> PlannedCleanup:
        made = make_plan(*args)  # type: ignore[arg-type]  # passed on
        life.live(steps.randint(0, 3), REUSES)
        return made

    def loaded(*args: object) -> Family:
        if steps.random() < 0.5:
            life.live(1, REUSES)
        return load(*args)  # type: ignore[arg-type]  # passed on

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "make_plan", planned)
        patch.setattr(Family, "load", staticmethod(loaded))
        yield


@pytest.mark.parametrize("seed", HISTORIES)
def test_nothing_that_others_commit_meanwhile_is_removed(seed: int, tmp_path: Path) -> None:
    life = Life(tmp_path / "table.lance", seed)
    life.live(STEPS)
    branch = life.chance.choice(life.branches)
    root = life.root(branch)
    now_ns = SystemClock().now_ns()
    policy, ask = drawn_policy(life, root, now_ns)
    rows = life.rows()
    own = oracle.own_versions(root)
    # Others are most in the way on the same line.
    life.branches = [branch]
    with interleaved(life, random.Random(seed)):
        cleaned(root, policy, now_ns)
    assert oracle.missing(life.top) == []
    after = life.rows()
    assert all(after[key] == rows[key] for key in rows.keys() & after.keys())
    lost = {manifest_of(*key) for key in rows.keys() - after.keys()}
    # Versions that others add and tags that they take away meanwhile let more versions go.
    assert lost <= oracle.dropped(life.top, root, branch, ask, gone=own)


def manifest_of(root: Path, version: int) -> Path:
    name = f"d{version}" if version >= DETACHED else f"{(1 << 64) - 1 - version:020d}"
    return root / "_versions" / f"{name}.manifest"
