"""Encode findings of tasks as bytes for the driver."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

from lancelake.engine.local import LocalEngine
from lancelake.engine.port import Engine, Job, Task
from lancelake.table.check.finding import Finding, Severity
from lancelake.table.check.subject import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFinding:
    """An error in a file of a version."""

    code: str
    message: str
    path: str | None = None
    hint: str | None = None
    fragment: int | None = None
    column: str | None = None


def encode(found: Iterable[TaskFinding]) -> bytes:
    """Encode the findings of a task."""
    return json.dumps([asdict(each) for each in found]).encode()


def run_tasks(
    subject: Subject, what: str, tasks: tuple[Task, ...], engine: Engine | None
) -> Iterator[Finding]:
    """Run tasks, on threads of this process unless an engine is given, and yield their findings."""
    if not tasks:
        return
    snapshot = subject.snapshot
    description = f"check {what} of {snapshot.location.uri} version {snapshot.version}"
    for result in (engine or LocalEngine()).run(Job(description=description, tasks=tasks)):
        for each in json.loads(result):
            yield Finding(
                **each,
                severity=Severity.ERROR,
                version=snapshot.version,
                branch=snapshot.branch,
            )
