"""A round on a table with a MemWAL finds nothing, and its judge finds what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from soak.plan import CREW, SoakOptions, wal_plans
from soak.rounds import play
from tests.support.memwal_storm import Journal

OPTIONS = SoakOptions(seed=1, seconds=1.0, round_seconds=1.0, crew=CREW, stores=("disk",))


def test_a_round_on_disk_with_faults(tmp_path: Path) -> None:
    (plan,) = wal_plans(OPTIONS, 0)
    result = play(plan, tmp_path / "round", lambda _: None)
    assert [str(finding) for finding in result.verdict.findings] == []
    assert result.verdict.outcomes["wal write", "ours", "ok"]


@pytest.mark.parametrize(
    ("found", "is_right"),
    [({1: "2"}, False), ({1: "4"}, True), ({}, True), ({1: "6"}, False), ({1: "4", 2: "8"}, False)],
)
def test_lost_and_unknown_rows_are_seen(found: dict[int, str | None], *, is_right: bool) -> None:
    journal = Journal()
    for line in ("try 1 2", "ack 1 2", "try 1 4", "ack 1 4", "try 1 5"):
        journal.hear(0, line)
    assert (journal.wrong(found) == []) is is_right


def test_rounds_are_of_every_store() -> None:
    options = SoakOptions(seed=1, seconds=1.0, round_seconds=1.0)
    assert [plan.store for plan in wal_plans(options, 3)] == ["disk", "s3"]
