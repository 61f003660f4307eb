"""Report a run: progress, summary and results page."""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from rich.table import Table

from soak.checks.finding import Wrong
from soak.plan import SoakOptions
from soak.rounds import RoundResult
from soak.stage import Tally

_OUTCOMES = ("ok", "fail", "unknown")
BEGIN = "<!-- results: written by `make soak`, do not edit -->"
END = "<!-- end of results -->"


def progress(tally: Tally, results: Sequence[RoundResult], rounds: int) -> Table:
    """Show the round that is going on."""
    plan = tally.plan
    wrong = sum(len(result.verdict.findings) for result in results)
    table = Table(
        title=f"round {plan.number + 1} of {rounds}: {plan}; "
        f"{tally.elapsed_s:.0f} of {plan.seconds:.0f} s, version {tally.version}, "
        f"{tally.kills} kills, {tally.faults.total()} faults; findings so far: {wrong}"
    )
    for name in ("who", *_OUTCOMES):
        table.add_column(name, justify="left" if name == "who" else "right")
    for who in dict.fromkeys(plan.crew):
        table.add_row(who, *(str(tally.outcomes[who, outcome]) for outcome in _OUTCOMES))
    return table


def line(result: RoundResult) -> str:
    """Tell about a finished round in one line."""
    verdict = result.verdict
    counts = Counter[str]()
    for (_, _, outcome), count in verdict.outcomes.items():
        counts[outcome] += count
    state = f"{len(verdict.findings)} FINDINGS, see {result.folder}" if verdict.findings else "ok"
    return (
        f"round {result.plan.number + 1} ({result.plan}): {verdict.versions} versions, "
        f"{counts['ok']} done, {counts['fail']} refused, {counts['unknown']} unknown, "
        f"{result.kills} kills, {result.faults.total()} faults, "
        f"{verdict.steps} steps, {verdict.reads} reads, {verdict.feeds} feeds, "
        f"{verdict.audits} audits: {state}"
    )


def summary(results: Sequence[RoundResult]) -> Table:
    """Show what was done in all rounds, by kind and by library."""
    total = _outcomes(results)
    libraries = sorted({library for _, library, _ in total})
    table = Table(title="operations done / refused / unknown")
    table.add_column("kind")
    for library in libraries:
        table.add_column(library, justify="right")
    for kind in sorted({kind for kind, _, _ in total}):
        table.add_row(kind, *(_cell(total, kind, library) for library in libraries))
    return table


def findings(results: Sequence[RoundResult], most: int = 60) -> Iterator[str]:
    """Yield what is wrong, each with its round."""
    found = [(r.plan.number + 1, f) for r in results for f in r.verdict.findings]
    for number, finding in found[:most]:
        yield f"round {number}: {finding}"
    if len(found) > most:
        yield f"and {len(found) - most} more"


def page(options: SoakOptions, results: Sequence[RoundResult]) -> str:
    """Return the report of a run as Markdown."""
    return "\n".join(["# The last soak", "", *_body(options, results), ""])


def write_docs(path: Path, options: SoakOptions, results: Sequence[RoundResult]) -> None:
    """Put the results between their marks on a page."""
    before, _, rest = path.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    body = "\n".join(_body(options, results))
    path.write_text(f"{before}{BEGIN}\n\n{body}\n\n{END}{after}")


def _body(options: SoakOptions, results: Sequence[RoundResult]) -> list[str]:
    wrong = Counter(f.wrong for result in results for f in result.verdict.findings)
    minutes = sum(result.plan.seconds for result in results) / 60
    versions = ", ".join(f"{name} {version(name)}" for name in ("lancelake", "pylance", "pyspark"))
    return [
        f"{datetime.now(UTC):%Y-%m-%d}, seed {options.seed}, {minutes:g} minutes in "
        f"{len(results)} rounds; {', '.join(options.crew)}; {versions}; "
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores.",
        "",
        "| round | table | versions | done | refused | unknown | kills | faults | steps | reads "
        "| feeds | audits | findings |",
        "|---" * 13 + "|",
        *(_round(result) for result in results),
        "",
        *_kinds(results),
        "",
        "| what would be wrong | found |",
        "|---|---|",
        *(f"| {each} | {wrong[each]} |" for each in Wrong),
        *(["", *(f"- {each}" for each in findings(results, 20))] if wrong else []),
    ]


def _round(result: RoundResult) -> str:
    verdict = result.verdict
    counts = Counter[str]()
    for (_, _, outcome), count in verdict.outcomes.items():
        counts[outcome] += count
    cells = [
        result.plan.number + 1,
        result.plan,
        verdict.versions,
        *(counts[outcome] for outcome in _OUTCOMES),
        result.kills,
        result.faults.total(),
        verdict.steps,
        verdict.reads,
        verdict.feeds,
        verdict.audits,
        len(verdict.findings),
    ]
    return f"| {' | '.join(map(str, cells))} |"


def _kinds(results: Sequence[RoundResult]) -> Iterator[str]:
    total = _outcomes(results)
    libraries = sorted({library for _, library, _ in total})
    yield f"| done / refused / unknown | {' | '.join(libraries)} |"
    yield "|---" * (len(libraries) + 1) + "|"
    for kind in sorted({kind for kind, _, _ in total}):
        yield f"| {kind} | {' | '.join(_cell(total, kind, name) for name in libraries)} |"


def _outcomes(results: Sequence[RoundResult]) -> Counter[tuple[str, str, str]]:
    total = Counter[tuple[str, str, str]]()
    for result in results:
        total += result.verdict.outcomes
    return total


def _cell(total: Counter[tuple[str, str, str]], kind: str, library: str) -> str:
    counts = [total[kind, library, outcome] for outcome in _OUTCOMES]
    return " / ".join(map(str, counts)) if any(counts) else ""
