"""Round on a table with a MemWAL: processes that are killed and stopped, and a check afterwards."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import lancelake.pylance as lance
from lancelake.commit.snapshot import Latest, open_snapshot
from lancelake.maintenance.check.finding import Severity
from lancelake.memwal.merge import merge_generations
from lancelake.memwal.setup import bucketed, flush_tails, initialize
from lancelake.memwal.table_check import check_table
from lancelake.memwal.view import Freshness, open_view
from lancelake.storage.location import Location
from soak.checker import Verdict
from soak.checks.finding import Finding, Wrong
from soak.history import lines
from soak.plan import OURS, RoundPlan
from soak.stage import Place
from tests.support.memwal_storm import LINES_BETWEEN, Journal, Storm
from tests.support.memwal_tables import rows

ROLES = ["writer", "writer", "writer", "merger", "collector"]
_BUCKETS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class WalOutcome:
    """What a storm left."""

    verdict: Verdict
    kills: int
    faults: Counter[str]


def storm(plan: RoundPlan, place: Place, folder: Path) -> WalOutcome:
    """Let processes work for the time of a round, and look at what they left."""
    calm = Location.parse(place.uri, place.calm)
    lance.write_dataset(rows(), place.uri, storage_options=place.calm)
    base = open_snapshot(calm, Latest())
    initialize(base, bucketed(base, "id", _BUCKETS))
    log = folder / "faults.jsonl"
    log.touch()
    working = Storm(place.uri, ROLES, plan.seed, options=place.options, faults=plan.faults, log=log)
    crash = ""
    until = time.monotonic() + plan.seconds
    try:
        with working:
            while time.monotonic() < until or not working.journal.acknowledgements:
                working.hear(LINES_BETWEEN)
                working.strike()
    except AssertionError as error:
        crash = str(error)
    found = list(_wrong(calm, working.journal))
    if crash:
        found.append(Finding(wrong=Wrong.CRASH, message=crash))
    (folder / "findings.txt").write_text("\n".join(map(str, found)))
    outcomes = Counter({("wal write", OURS, "ok"): working.journal.acknowledgements})
    outcomes["wal write", OURS, "unknown"] = sum(map(len, working.journal.tried.values()))
    return WalOutcome(
        verdict=Verdict(
            findings=tuple(found),
            outcomes=outcomes,
            versions=open_snapshot(calm, Latest()).version,
            steps=0,
            reads=len(Freshness),
            feeds=0,
            audits=1,
        ),
        kills=working.kills,
        faults=Counter(line["what"] for line in lines(log)),
    )


def _wrong(place: Location, journal: Journal) -> Iterator[Finding]:
    found = _rows(place, Freshness.DURABLE)
    if len(found) != len(dict(found)):
        yield Finding(wrong=Wrong.DUPLICATE_KEY, message="a key has two rows")
    for message in journal.wrong(dict(found)):
        yield Finding(wrong=Wrong.LOST_UPDATE, message=message)
    flush_tails(open_snapshot(place, Latest()))
    merge_generations(open_snapshot(place, Latest()))
    for freshness in Freshness:
        if _rows(place, freshness) != found:
            message = f"rows differ after a merge, at freshness {freshness.value}"
            yield Finding(wrong=Wrong.READERS_DISAGREE, message=message)
    for each in check_table(place, data=True):
        if each.severity is Severity.ERROR:
            yield Finding(wrong=Wrong.UNSOUND_TABLE, message=str(each))


def _rows(place: Location, freshness: Freshness) -> list[tuple[int, str | None]]:
    table = open_view(open_snapshot(place, Latest()), freshness).to_table()
    return sorted((row["id"], row["name"]) for row in table.to_pylist())
