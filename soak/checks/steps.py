"""Attribute each version to an operation, and check the difference to its predecessor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from soak.checks.effects import EFFECTS, WRITES_ROWS, KnownKeys, count_of
from soak.checks.finding import Finding, Wrong
from soak.checks.states import Difference, difference
from soak.history import FIRST, Commit, History, Operation, Rows
from soak.plan import OURS, SPARK


@dataclass
class Landed:
    """Where operations landed, as far as it was seen."""

    versions: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    steps: int = 0
    """Versions that were compared with the one before."""


def follow(history: History) -> Landed:
    """Compare every version with the one before, and find its operation."""
    walk = _Walk(history)
    states = history.states
    for version in sorted(states):
        if version - 1 in states:
            walk.landed.steps += 1
            walk.step(version, states[version - 1], states[version])
    return walk.landed


class _Walk:
    """The way through a history, version by version."""

    def __init__(self, history: History) -> None:
        self.landed = Landed()
        self._operations = {operation.id: operation for operation in history.operations}
        self._commits = history.commits
        self._states = history.states
        self._claims: dict[int, list[Operation]] = {}
        for operation in history.operations:
            if operation.version is not None and operation.kind in EFFECTS:
                self._claims.setdefault(operation.version, []).append(operation)

    def step(self, version: int, before: Rows, after: Rows) -> None:
        """Judge the way from one version to the next."""
        commit = self._commits.get(version)
        found = difference(before, after)
        if commit is not None and commit.kind == "Restore":
            self._restored(commit, after)
            return
        writers = found.writers()
        if writers:
            for writer in sorted(writers):
                self._written(version, writer, before, found, alone=len(writers) == 1)
        elif found.removed:
            self._removed(version, before, found)
        else:
            self._unchanged(version, before, found)

    def _restored(self, commit: Commit, after: Rows) -> None:
        old = self._states.get(commit.restored or 0)
        if old is not None and not difference(old, after).is_empty:
            self._wrong(
                Wrong.UNEXPLAINED_CHANGE,
                commit.version,
                f"restored version {commit.restored} is not what it was",
            )

    def _written(
        self, version: int, writer: str, before: Rows, found: Difference, *, alone: bool
    ) -> None:
        operation = self._operations.get(writer)
        if operation is None or operation.kind not in WRITES_ROWS:
            what = "an initial row reappeared" if writer == FIRST else "no operation wrote a row"
            wrong = Wrong.RESURRECTED_ROW if writer == FIRST else Wrong.DIRTY_READ
            self._wrong(wrong, version, what, writer)
        elif operation.outcome == "fail":
            self._wrong(Wrong.FAILED_BUT_APPLIED, version, operation.error, writer)
        elif writer in self.landed.versions:
            first = self.landed.versions[writer]
            rows = [key for key, row in found.added.items() if row.by == writer]
            if operation.kind in ("append", "stream") and len(rows) < len(operation.args["ids"]):
                message = f"rows {rows[:4]} of version {first} came back"
                self._wrong(Wrong.RESURRECTED_ROW, version, message, writer)
            else:
                self._wrong(Wrong.APPLIED_TWICE, version, f"first in version {first}", writer)
        elif not alone:
            message = f"{operation.kind} shares its version with others"
            self._wrong(Wrong.UNEXPLAINED_CHANGE, version, message, writer)
        else:
            self._land(version, operation, before, found)

    def _removed(self, version: int, before: Rows, found: Difference) -> None:
        fitting = [
            operation
            for operation in self._operations.values()
            if operation.kind == "delete"
            and operation.id not in self.landed.versions
            and found.removed.keys() <= set(operation.args["ids"])
            and operation.read_version < version
            and operation.version in (None, version)
        ]
        fitting.sort(key=lambda each: ("ok", "unknown", "fail").index(each.outcome))
        if not fitting:
            rows = sorted(found.removed)
            message = f"{len(rows)} rows are missing, {rows[:4]}, and no operation deleted them"
            self._wrong(Wrong.UNEXPLAINED_CHANGE, version, message)
        elif fitting[0].outcome == "fail":
            self._wrong(Wrong.FAILED_BUT_APPLIED, version, fitting[0].error, fitting[0].id)
        else:
            self._land(version, fitting[0], before, found)

    def _unchanged(self, version: int, before: Rows, found: Difference) -> None:
        for operation in self._claims.get(version, ()):
            if operation.id not in self.landed.versions:
                self._land(version, operation, before, found)

    def _land(self, version: int, operation: Operation, before: Rows, found: Difference) -> None:
        self.landed.versions[operation.id] = version
        known = self._known(operation, self._commits.get(version))
        problem = EFFECTS[operation.kind](operation, before, found, known)
        if problem is not None:
            message = f"{operation.kind} by {operation.library}: {problem}"
            self._wrong(Wrong.LOST_UPDATE, version, message, operation.id)
        count = count_of(operation, found)
        if count is not None:
            self._wrong(Wrong.WRONG_COUNT, version, f"{operation.kind}: {count}", operation.id)
        if operation.version not in (None, version):
            message = f"{operation.kind} said version {operation.version}"
            self._wrong(Wrong.WRONG_VERSION, version, message, operation.id)

    def _known(self, operation: Operation, commit: Commit | None) -> KnownKeys | None:
        """Return the keys that an operation may have read; None means those of the version before.

        Official releases record the version that a commit was rebased onto, not the one they read.
        """
        if commit is None:
            return None
        is_exact = operation.library in (OURS, SPARK)
        first = commit.read_version if is_exact else operation.read_version
        versions = range(first, commit.read_version + 1)
        found = [self._states[v].keys() for v in versions if v in self._states]
        if len(found) < len(versions) or not found:
            return KnownKeys(always=frozenset(), ever=frozenset(operation.args.get("ids", ())))
        return KnownKeys(
            always=frozenset.intersection(*map(frozenset, found)), ever=frozenset().union(*found)
        )

    def _wrong(self, wrong: Wrong, version: int, message: str, *operations: str) -> None:
        self.landed.findings.append(
            Finding(wrong=wrong, version=version, message=message, operations=operations)
        )


def lost_updates(history: History, landed: Landed) -> Iterator[Finding]:
    """Yield operations that were acknowledged, and of which nothing is to be seen."""
    states = history.states
    for operation in history.operations:
        if operation.outcome != "ok" or operation.kind not in EFFECTS:
            continue
        if operation.id in landed.versions or not _should_change(operation, states):
            continue
        if _was_looked_for(operation, states):
            yield Finding(
                wrong=Wrong.LOST_UPDATE,
                version=operation.version,
                message=f"{operation.kind} by {operation.library} was acknowledged and is nowhere",
                operations=(operation.id,),
            )


def _should_change(operation: Operation, states: dict[int, Rows]) -> bool:
    """True when an operation cannot have been without effect."""
    match operation.kind:
        case "append" | "stream" | "upsert":
            return True
        case "delete" | "update" | "transfer" | "insert":
            if operation.result.get("rows") is not None:
                return bool(operation.result["rows"])
            rows = states.get(operation.version or 0, {})
            return operation.kind != "insert" and bool(rows.keys() & operation.args.get("ids", ()))
        case _:
            return False


def _was_looked_for(operation: Operation, states: dict[int, Rows]) -> bool:
    """True when the version that it made was compared with the one before."""
    if operation.version is None:
        first, last = operation.read_version, max(states, default=0)
        return all(version in states for version in range(first, last + 1))
    return operation.version in states and operation.version - 1 in states
