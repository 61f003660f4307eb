"""What a transaction records about itself: the operation by name, its metrics, user and engine."""

from __future__ import annotations

import functools
import getpass
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import assert_never

from lancelake.commit.snapshot import Snapshot
from lancelake.format import operations as ops
from lancelake.format.fragment import Fragment
from lancelake.format.fragment_list import FragmentList
from lancelake.format.frozen import FrozenMap
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.operations import Transaction

_NAME = "lancelake.operation"
_METRICS = "lancelake.operationMetrics"
_USER = "lancelake.user"
_ENGINE = "lancelake.engine"
_OWN = frozenset({_NAME, _METRICS, _USER, _ENGINE})
_MOST_METRICS = 100
_DECLARED = {_ENGINE: f"Python {platform.python_version()}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """How many rows an operation inserted, updated and deleted."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0


NO_ROWS = RowCounts()


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a commit is for, where its operation alone does not show it."""

    name: str | None = None
    rows: RowCounts | None = None
    begun_s: float | None = None
    """When the work began, on the clock that never runs backwards."""

    def called(self, name: str) -> Work:
        """Return the work under a name, unless it has one: the outermost caller knows best."""
        return self if self.name is not None else replace(self, name=name)

    def begun(self, now_s: float) -> Work:
        """Return the work with its begin, unless it has one."""
        return self if self.begun_s is not None else replace(self, begun_s=now_s)


NO_WORK = Work()


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What is known about a transaction; what others wrote is named after its operation."""

    name: str
    metrics: FrozenMap[str, int]
    user: str | None
    engine: str | None
    properties: FrozenMap[str, str]
    """The other properties of the transaction."""


def declare_engine(name: str) -> None:
    """Set what is recorded as the engine of this process's commits."""
    _DECLARED[_ENGINE] = name


def recorded(
    transaction: Transaction, base: Snapshot | None, work: Work, now_s: float
) -> Transaction:
    """Return a transaction that records what it does to a version; None for a new table."""
    operation = transaction.operation
    marks = {
        _NAME: work.name or _name(operation, base),
        _METRICS: json.dumps(_metrics(operation, base, work, now_s), separators=(",", ":")),
        _ENGINE: _DECLARED[_ENGINE],
    }
    user = _user()
    if user is not None:
        marks[_USER] = user
    return replace(transaction, properties=FrozenMap({**transaction.properties, **marks}))


def record_of(transaction: Transaction | None) -> Record:
    """Return what a transaction records; the name is `?` without one."""
    if transaction is None:
        empty: FrozenMap[str, str] = FrozenMap()
        return Record(name="?", metrics=FrozenMap(), user=None, engine=None, properties=empty)
    properties = transaction.properties
    return Record(
        name=properties.get(_NAME) or _name(transaction.operation, None),
        metrics=_parsed(properties.get(_METRICS)),
        user=properties.get(_USER),
        engine=properties.get(_ENGINE),
        properties=FrozenMap({k: v for k, v in properties.items() if k not in _OWN}),
    )


def metrics_text(metrics: Mapping[str, int]) -> str:
    """Return how many rows were inserted, updated and deleted; empty if none were."""
    words = [name for name in ("inserted", "updated", "deleted") if metrics.get(f"rows_{name}")]
    return ", ".join(f"{metrics[f'rows_{name}']:,} {name}" for name in words)


def _parsed(text: str | None) -> FrozenMap[str, int]:
    """Parse metrics, of which those of a stranger's table may be anything."""
    try:
        metrics = json.loads(text or "{}")
    except (ValueError, RecursionError):
        metrics = {}
    pairs = list(metrics.items())[:_MOST_METRICS] if isinstance(metrics, dict) else []
    return FrozenMap({k: v for k, v in pairs if type(v) is int and abs(v) < 1 << 63})


def _metrics(
    operation: ops.Operation, base: Snapshot | None, work: Work, now_s: float
) -> dict[str, int]:
    gone, come = _fragments(operation, base)
    old = {file.path: file.file_size_bytes or 0 for f in gone for file in f.files}
    new = {file.path: file.file_size_bytes or 0 for f in come for file in f.files}
    if isinstance(operation, ops.CreateIndex):
        old, new = _index_files(operation.removed_indices), _index_files(operation.new_indices)
    added, removed = new.keys() - old.keys(), old.keys() - new.keys()
    metrics = _rows(operation, gone, come, work) | {
        "files_added": len(added) or None,
        "files_removed": len(removed) or None,
        "bytes_added": sum(new[path] for path in added) or None,
        "bytes_removed": sum(old[path] for path in removed) or None,
        "milliseconds": None if work.begun_s is None else round(1000 * (now_s - work.begun_s)),
    }
    return {name: value for name, value in metrics.items() if value is not None}


def _index_files(entries: Sequence[IndexMetadata]) -> dict[str, int]:
    return {f"{e.uuid}/{file.path}": file.size_bytes for e in entries for file in e.files}


def _rows(
    operation: ops.Operation, gone: Sequence[Fragment], come: Sequence[Fragment], work: Work
) -> dict[str, int | None]:
    if work.rows is not None:
        return {f"rows_{name}": count for name, count in asdict(work.rows).items()}
    if not isinstance(operation, ops.Append | ops.Overwrite | ops.Delete | ops.Update):
        return {}
    kept = {f.id for f in come} & {f.id for f in gone} if _keeps_ids(operation) else set()
    stayed = _live([f for f in come if f.id in kept])
    before, new = _live(gone), _live([f for f in come if f.id not in kept])
    deleted = None if before is None or stayed is None else before - stayed
    return {"rows_inserted": new or None, "rows_deleted": deleted or None}


def _keeps_ids(operation: ops.Operation) -> bool:
    return isinstance(operation, ops.Delete | ops.Update)


def _live(fragments: Sequence[Fragment]) -> int | None:
    counts = [fragment.live_rows for fragment in fragments]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _fragments(
    operation: ops.Operation, base: Snapshot | None
) -> tuple[Sequence[Fragment], Sequence[Fragment]]:
    """Return the fragments of a version that an operation changes or removes, and its own."""
    before = FragmentList.of(() if base is None else base.manifest.fragments)
    match operation:
        case ops.Append():
            return (), operation.fragments
        case ops.Overwrite():
            return tuple(before), operation.fragments
        case ops.Delete():
            ids = [f.id for f in operation.updated_fragments] + [*operation.deleted_fragment_ids]
            come = operation.updated_fragments
        case ops.Update():
            ids = [f.id for f in operation.updated_fragments] + [*operation.removed_fragment_ids]
            come = operation.updated_fragments + operation.new_fragments
        case ops.Merge():
            after = FragmentList.of(operation.fragments)
            return before.changed_since(after), after.changed_since(before)
        case ops.Rewrite():
            groups = operation.groups
            old = [f for group in groups for f in group.old_fragments]
            return old, [f for group in groups for f in group.new_fragments]
        case _:
            return (), ()
    by_id = before.by_id()
    return [by_id[i] for i in ids if i in by_id], come


def _name(operation: ops.Operation, base: Snapshot | None) -> str:  # noqa: C901  # one case per operation
    match operation:
        case ops.Append():
            return "WRITE"
        case ops.Overwrite():
            return "WRITE" if operation.fragments or base is not None else "CREATE TABLE"
        case ops.Delete():
            return "DELETE"
        case ops.Update():
            is_merge = operation.inserted_rows is not None or operation.merged_generations
            return "MERGE" if is_merge else "UPDATE"
        case ops.Merge():
            return "ADD COLUMNS"
        case ops.Project():
            return "CHANGE COLUMNS"
        case ops.Rewrite():
            return "OPTIMIZE"
        case ops.ReserveFragments():
            return "RESERVE FRAGMENTS"
        case ops.CreateIndex():
            return _index_name(operation)
        case ops.UpdateConfig():
            return "SET PROPERTIES"
        case ops.DataReplacement():
            return "REPLACE FILES"
        case ops.Restore():
            return "RESTORE"
        case ops.Clone():
            return "CLONE"
        case ops.UpdateBases():
            return "ADD BASES"
        case ops.UpdateMemWalState():
            return "UPDATE MEMWAL"
        case ops.UnknownOperation():
            return "UNKNOWN"
        case _:
            assert_never(operation)


def _index_name(operation: ops.CreateIndex) -> str:
    if not operation.new_indices:
        return "DROP INDEX"
    return "OPTIMIZE INDEX" if operation.removed_indices else "CREATE INDEX"


@functools.cache
def _user() -> str | None:
    """Return the user of this process; a container may have none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return None
