"""Parse the log lines of a round into operations and reads."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

Json = dict[str, Any]  # one line of a log
Outcome = Literal["ok", "fail", "unknown"]
FIRST = "first"
"""The writer of the rows that a table begins with."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row, without its key."""

    value: int
    by: str


Rows = dict[int, Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation that a process attempted, and its outcome.

    Times are of one clock that all processes share. `unknown` means that it may have happened:
    the process died meanwhile, or the outcome was reported as unknown.
    """

    id: str
    process: str
    library: str
    kind: str
    args: Json
    read_version: int
    invoked: int
    outcome: Outcome
    done: int | None = None
    version: int | None = None
    result: Json = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """All rows of one version, as one process saw them."""

    process: str
    library: str
    version: int
    rows: tuple[tuple[int, int, str], ...]
    columns: dict[str, tuple[int, int]] = field(default_factory=dict)
    """For each further column, how many values are null and how many are wrong."""
    how: str = "scan"

    def state(self) -> Rows:
        """Return the rows by key; of equal keys the last."""
        return {key: Row(value, by) for key, value, by in self.rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of a row as the change feed reports it."""

    kind: str
    version: int
    key: int
    row: Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """What the change feed says about the versions after `begin`, up to `end`."""

    process: str
    begin: int
    end: int
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A process opened the newest version: asked at one time, answered at another."""

    process: str
    asked: int
    answered: int
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """What the table itself says about how a version came to be."""

    version: int
    kind: str
    read_version: int
    restored: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """Content of a version, or of a branch at the end, read without concurrent writers.

    `digest` stands for the rows; `error` says why there is none.
    """

    library: str
    version: int
    branch: str | None = None
    digest: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Final:
    """What was found when everything stood still."""

    tags: dict[str, int] = field(default_factory=dict)
    audits: tuple[Audit, ...] = ()
    findings: tuple[str, ...] = ()
    """What `lancelake check` calls an error."""
    crashes: tuple[str, ...] = ()
    """Processes that ended, or did not, on their own."""


@dataclass(frozen=True, kw_only=True)
class History:
    """Everything that a judge needs to know about a round."""

    operations: tuple[Operation, ...] = ()
    reads: tuple[Read, ...] = ()
    feeds: tuple[Feed, ...] = ()
    seen: tuple[Seen, ...] = ()
    commits: dict[int, Commit] = field(default_factory=dict)
    final: Final = field(default_factory=Final)
    accounts: range = range(0)
    """Keys between which values are moved: their sum never changes."""
    retention_s: float = 3600.0
    """Versions that are older may be removed while they are read."""

    @cached_property
    def states(self) -> dict[int, Rows]:
        """Return the rows of every version that was read, as they were first seen."""
        found: dict[int, Rows] = {}
        for read in self.reads:
            if read.version not in found:
                found[read.version] = read.state()
        return found


def digest(rows: Iterable[Sequence[Any]]) -> str:
    """Return a short name for some rows, in any order."""
    text = json.dumps(sorted([key, value, by] for key, value, by in rows))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def load(
    logs: Iterable[Path], *, final: Final, accounts: range, retention_s: float = 3600.0
) -> History:
    """Put the logs of all processes together."""
    operations: list[Operation] = []
    reads: list[Read] = []
    feeds: list[Feed] = []
    seen: list[Seen] = []
    commits: dict[int, Commit] = {}
    for log in logs:
        open_calls: dict[str, Json] = {}
        for line in lines(log):
            match line["t"]:
                case "invoke":
                    open_calls[line["op"]] = line
                case "ok" | "fail" | "unknown":
                    operations.append(_operation(open_calls.pop(line["op"]), line))
                case "read":
                    reads.append(_read(line))
                case "feed":
                    feeds.append(_feed(line))
                case "seen":
                    seen.append(Seen(**_fields(line)))
                case "commit":
                    commits[line["version"]] = Commit(**_fields(line))
                case _:
                    pass
        operations += [_operation(call, None) for call in open_calls.values()]
    operations.sort(key=lambda operation: operation.invoked)
    return History(
        operations=tuple(operations),
        reads=tuple(reads),
        feeds=tuple(feeds),
        seen=tuple(seen),
        commits=commits,
        final=final,
        accounts=accounts,
        retention_s=retention_s,
    )


def lines(path: Path) -> Iterator[Json]:
    """Yield the lines of a log; one that its writer could not finish is left out."""
    with path.open("rb") as file:
        for text in file:
            if text.endswith(b"\n"):
                yield json.loads(text)


def _fields(line: Json) -> Json:
    return {name: value for name, value in line.items() if name != "t"}


def _operation(call: Json, end: Json | None) -> Operation:
    end = end or {"t": "unknown", "error": "the process was killed"}
    return Operation(
        id=call["op"],
        process=call["process"],
        library=call["library"],
        kind=call["kind"],
        args=call["args"],
        read_version=call["read_version"],
        invoked=call["at"],
        outcome=end["t"],
        done=end.get("at"),
        version=end.get("version"),
        result=end.get("result") or {},
        error=end.get("error", ""),
    )


def _read(line: Json) -> Read:
    fields = _fields(line)
    fields["rows"] = tuple((key, value, sys.intern(by)) for key, value, by in line["rows"])
    fields["columns"] = {name: (n, w) for name, (n, w) in line.get("columns", {}).items()}
    return Read(**fields)


def _feed(line: Json) -> Feed:
    changes = tuple(
        Change(kind=kind, version=version, key=key, row=Row(value, by))
        for kind, version, key, value, by in line["changes"]
    )
    return Feed(process=line["process"], begin=line["begin"], end=line["end"], changes=changes)
