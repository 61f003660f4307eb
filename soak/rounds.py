"""Run one round, audit the table, and check the history."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lancelake.maintenance.check.finding import Severity
from lancelake.memwal.table_check import check_table
from lancelake.storage.location import Location
from soak.actor import OURS as OUR_LIBRARY
from soak.checker import Verdict, judge
from soak.history import Audit, Final, lines, load
from soak.plan import OURS, RELEASES, RoundPlan, as_json
from soak.players import SparkHost, run_module
from soak.stage import Place, Stage, Tally, place_of
from soak.table import ACCOUNTS
from soak.wal_round import storm


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundResult:
    """A round, and what the judge says about it."""

    plan: RoundPlan
    verdict: Verdict
    kills: int
    faults: Counter[str]
    folder: Path
    """Where logs and table stay when something is wrong."""


def play(
    plan: RoundPlan,
    folder: Path,
    report: Callable[[Tally], None],
    *,
    spark: SparkHost | None = None,
    keep: bool = False,
) -> RoundResult:
    """Play a round in a folder; what it wrote is removed when all is well."""
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text(json.dumps(as_json(plan), indent=2))
    if plan.is_wal:
        return _play_wal(plan, folder, keep=keep)
    with place_of(plan, folder) as place:
        stage = Stage(plan, place, folder, report, spark)
        stage.run()
        final = _final(plan, place, folder, stage)
        verdict = judge(
            load(stage.logs, final=final, accounts=ACCOUNTS, retention_s=plan.retention_s)
        )
    (folder / "findings.txt").write_text("\n".join(map(str, verdict.findings)))
    if not verdict.findings and not keep:
        shutil.rmtree(folder)
    return RoundResult(
        plan=plan,
        verdict=verdict,
        kills=stage.tally.kills,
        faults=stage.tally.faults,
        folder=folder,
    )


def _play_wal(plan: RoundPlan, folder: Path, *, keep: bool) -> RoundResult:
    with place_of(plan, folder) as place:
        outcome = storm(plan, place, folder)
    if not outcome.verdict.findings and not keep:
        shutil.rmtree(folder)
    return RoundResult(
        plan=plan,
        verdict=outcome.verdict,
        kills=outcome.kills,
        faults=outcome.faults,
        folder=folder,
    )


def _final(plan: RoundPlan, place: Place, folder: Path, stage: Stage) -> Final:
    branches = _branches(stage.logs)
    tags: dict[str, int] = {}
    audits: list[Audit] = []
    for who in dict.fromkeys((OURS, *(w for w in plan.crew if w in RELEASES))):
        given = {
            "library": OUR_LIBRARY if who == OURS else "lance",
            "uri": place.uri,
            "options": place.calm,
            "branches": branches,
        }
        errors = folder / f"auditor-{who}.err"
        process = run_module("soak.auditor", json.dumps(given), who, errors, answers=True)
        out, _ = process.communicate()
        for line in map(json.loads, out.splitlines()):
            if "tags" in line:
                tags = line["tags"]
            else:
                audits.append(Audit(**{**line, "library": who}))
        if process.returncode:
            stage.tally.crashes.append(f"auditor {who}: {errors.read_text()[-600:]}")
    found = check_table(Location.parse(place.uri, place.calm), data=True, versions="all")
    grave = tuple(str(each) for each in found if each.severity is Severity.ERROR)
    crashes = tuple(stage.tally.crashes)
    return Final(tags=tags, audits=tuple(audits), findings=grave, crashes=crashes)


def _branches(logs: list[Path]) -> dict[str, str]:
    """Return the branches that were made, with their URIs."""
    names: dict[str, str] = {}
    found: dict[str, str] = {}
    for log in logs:
        for line in lines(log):
            if line["t"] == "invoke" and line["kind"] == "branch":
                names[line["op"]] = line["args"]["name"]
            elif line["t"] == "ok" and line["op"] in names:
                found[names[line["op"]]] = line["result"]["uri"]
    return found
