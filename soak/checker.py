"""Check a history: logs in, findings out, without I/O."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import chain

from soak.checks import ends, feeds, order, states, steps
from soak.checks.finding import Finding
from soak.history import History


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is wrong, and how much was looked at."""

    findings: tuple[Finding, ...]
    outcomes: Counter[tuple[str, str, str]]
    """How often an operation of a kind, by a library, had an outcome."""
    versions: int
    steps: int
    reads: int
    feeds: int
    audits: int


def judge(history: History) -> Verdict:
    """Put every question to a history."""
    landed = steps.follow(history)
    found = chain(
        states.unstable_versions(history),
        states.duplicate_keys(history),
        states.wrong_totals(history),
        states.wrong_columns(history),
        landed.findings,
        steps.lost_updates(history, landed),
        order.versions_go_back(history),
        order.commits_go_back(history),
        feeds.wrong_feeds(history),
        ends.audits(history),
        ends.branches(history),
        ends.tags(history),
        ends.failed_reads(history),
        ends.crude_errors(history),
        ends.soundness(history),
    )
    return Verdict(
        findings=tuple(found),
        outcomes=Counter((o.kind, o.library, o.outcome) for o in history.operations),
        versions=max((seen.version for seen in history.seen), default=0),
        steps=landed.steps,
        reads=len(history.reads),
        feeds=len(history.feeds),
        audits=len(history.final.audits),
    )
