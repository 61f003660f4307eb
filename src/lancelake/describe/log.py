"""History of a table: versions, what each changed, growth."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import chain, islice, pairwise

from lancelake.commit.snapshot import Snapshot, list_versions
from lancelake.describe import documents
from lancelake.describe.documents import Json, document, writer_text
from lancelake.errors import LanceTableError
from lancelake.format.layout import ManifestName
from lancelake.format.operations import Clone, Transaction
from lancelake.format.refs import Tag
from lancelake.format.schema import Schema
from lancelake.maintenance.check.refs import CheckedRefs
from lancelake.maintenance.reachable import KnownRefs
from lancelake.storage.location import Location
from lancelake.table import history
from lancelake.table.operation_record import record_of
from lancelake.threads import Pool

_THREADS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """A version in the log; without a snapshot if its manifest cannot be read."""

    version: int
    snapshot: Snapshot | None = None
    transaction: Transaction | None = None
    change: history.VersionDelta | None = None
    counts: history.VersionSummary | None = None
    damage: str | None = None
    tags: tuple[str, ...] = ()


def version_names(newest: Snapshot) -> list[ManifestName]:
    """Return the versions up to one, newest first."""
    return [n for n in reversed(list_versions(newest.location)) if n.version <= newest.version]


def tags_of_versions(at: Snapshot, tags: Mapping[str, Tag]) -> dict[int, tuple[str, ...]]:
    """Return the tags of the versions on the line of a snapshot, sorted."""
    return tags_on(KnownRefs(tags=tags, branches={}), at.branch)


def tags_on(refs: KnownRefs, branch: str | None) -> dict[int, tuple[str, ...]]:
    """Return the tags of the versions on a line, sorted."""
    names: dict[int, tuple[str, ...]] = {}
    for label, version in sorted(refs.tagged(branch).items()):
        names[version] = (*names.get(version, ()), label)
    return names


def log_entries(newest: Snapshot, names: list[ManifestName]) -> Iterator[LogEntry]:
    """Yield versions newest first, each compared with the one before it."""
    tagged = tags_of_versions(newest, CheckedRefs.load(newest.main_location).tags)
    yield from line_entries(newest.location, names, tagged)


def line_entries(
    line: Location, names: Sequence[ManifestName], tagged: Mapping[int, tuple[str, ...]]
) -> Iterator[LogEntry]:
    """Yield versions of a line newest first, each compared with the next of the names."""
    pairs = itertools.pairwise(itertools.chain(line_snapshots(line, names), [None]))
    sums = history.FragmentSums()
    for name, (snapshot, before) in zip(names, pairs, strict=False):
        labels = tagged.get(name.version, ())
        if isinstance(snapshot, Snapshot):
            yield _entry(snapshot, before, sums, labels)
        elif snapshot is not None:
            yield LogEntry(version=name.version, damage=snapshot.problem, tags=labels)


def line_snapshots(
    line: Location, names: Sequence[ManifestName]
) -> Iterator[Snapshot | LanceTableError]:
    """Load versions a few at a time; an error stands for one that cannot be read."""
    with Pool(_THREADS) as pool:
        for start in range(0, len(names), _THREADS):
            yield from pool.map(partial(_load, line), names[start : start + _THREADS])


def _load(line: Location, name: ManifestName) -> Snapshot | LanceTableError:
    try:
        return Snapshot.load(line, name)
    except LanceTableError as error:
        return error


def _entry(
    snapshot: Snapshot,
    before: Snapshot | LanceTableError | None,
    sums: history.FragmentSums,
    tags: tuple[str, ...],
) -> LogEntry:
    transaction = _transaction(snapshot)
    operation = None if transaction is None else transaction.operation
    is_first = snapshot.version == 1 or isinstance(operation, Clone)
    difference = None
    if is_first:
        difference = history.change(None, snapshot, operation)
    elif isinstance(before, Snapshot) and before.version == snapshot.version - 1:
        difference = history.change(before, snapshot, operation)
    return LogEntry(
        version=snapshot.version,
        snapshot=snapshot,
        transaction=transaction,
        change=difference,
        counts=sums.of_snapshot(snapshot),
        tags=tags,
    )


def _transaction(snapshot: Snapshot) -> Transaction | None:
    try:
        return snapshot.transaction
    except LanceTableError:
        return None


def log_document(entry: LogEntry) -> Json:
    """Return an entry of the log."""
    snapshot, transaction, counts = entry.snapshot, entry.transaction, entry.counts
    if snapshot is None or counts is None:
        return {"version": entry.version, "damage": entry.damage, "tags": list(entry.tags)}
    manifest = snapshot.manifest
    operation = None if transaction is None else transaction.operation
    record = record_of(transaction)
    return {
        "version": entry.version,
        "damage": None,
        "tags": list(entry.tags),
        "written_at": manifest.timestamp.isoformat() if manifest.timestamp else None,
        "writer": writer_text(manifest.writer_version),
        "operation": None if transaction is None else record.name,
        "details": None if operation is None else documents.details(operation),
        "message": None if transaction is None else transaction.message,
        "metrics": dict(record.metrics),
        "user": record.user,
        "engine": record.engine,
        "properties": document(record.properties),
        "read_version": None if transaction is None else transaction.read_version,
        "rows": history.version_rows(snapshot),
        "fragments": counts.total_fragments,
        "data_files": counts.total_data_files,
        "data_bytes": counts.total_files_size,
        "change": document(entry.change),
    }


_MOST_ITEMS = 200


def commit_document(snapshot: Snapshot) -> Json:
    """Return a version with its transaction, and the versions before and after it."""
    names = list_versions(snapshot.location)
    tagged = tags_of_versions(snapshot, CheckedRefs.load(snapshot.main_location).tags)
    older = [name for name in names if name.version < snapshot.version]
    entry = next(iter(line_entries(snapshot.location, [snapshot.name, *older[-1:]], tagged)))
    done = entry.transaction
    return {
        **log_document(entry),
        "branch": snapshot.branch,
        "previous": older[-1].version if older else None,
        "next": min((n.version for n in names if n.version > snapshot.version), default=None),
        "manifest": {"name": snapshot.name.name, "size_bytes": snapshot.manifest_size},
        "transaction": None if done is None else done.uuid,
    }


def diff_document(before: Snapshot, after: Snapshot) -> Json:
    """Return the differences of two versions, of each kind the first and their number."""
    difference = history.diff(before, after)
    body: dict[str, Json] = {
        "before": {"version": before.version, "branch": before.branch},
        "after": {"version": after.version, "branch": after.branch},
        "is_empty": difference.is_empty,
        "totals": {},
    }
    for field in fields(difference):
        value = getattr(difference, field.name)
        if isinstance(value, tuple):
            body["totals"][field.name] = len(value)
            value = value[:_MOST_ITEMS]
        body[field.name] = document(value)
    return body


_NOTHING = Schema(fields=())


def schema_history(newest: Snapshot, before: int | None, most: int) -> Json:
    """Return the versions that changed columns, newest first, among some versions.

    At most `most` versions older than `before` are examined; `next` continues with older ones, and
    is None at the oldest. The oldest version is listed with all its columns.
    """
    names = [n for n in version_names(newest) if before is None or n.version < before]
    # One version more, with which the oldest one examined is compared.
    loaded = line_snapshots(newest.location, names[: most + 1])
    readable = (each for each in loaded if isinstance(each, Snapshot))
    last = names[min(most, len(names)) - 1].version if names else 0
    changes = [
        _change(snapshot, older)
        for snapshot, older in pairwise(chain(readable, [None]))
        if snapshot is not None
        and snapshot.version >= last
        and (older is None or _has_changes(snapshot, older))
    ]
    examined = names[:most]
    return {
        "changes": changes,
        "examined": [examined[0].version, examined[-1].version] if examined else None,
        "next": examined[-1].version if len(names) > most else None,
    }


def _has_changes(snapshot: Snapshot, older: Snapshot) -> bool:
    return bool(history.column_changes(older.manifest.schema, snapshot.manifest.schema))


def _change(snapshot: Snapshot, older: Snapshot | None) -> Json:
    before = _NOTHING if older is None else older.manifest.schema
    written = snapshot.manifest.timestamp
    return {
        "version": snapshot.version,
        "written_at": written.isoformat() if written else None,
        "operation": record_of(_transaction(snapshot)).name,
        "is_oldest": older is None,
        "columns": document(history.column_changes(before, snapshot.manifest.schema)),
    }


_POWERS = (10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeClass:
    """Fragments with fewer rows than `below` and not in a smaller class; None is the largest."""

    below: int | None
    fragments: int
    rows: int
    deleted_rows: int

    @property
    def deleted_share(self) -> float:
        """Part of the rows of these fragments that is deleted."""
        stored = self.rows + self.deleted_rows
        return self.deleted_rows / stored if stored else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthPoint:
    """Rows and bytes of data files of a version."""

    version: int
    operation: str
    rows: int
    data_bytes: int
    fragments: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionGrowth:
    """The last versions, oldest first, and the number of those before them.

    `damaged` are versions among them whose manifest cannot be read.
    """

    points: tuple[GrowthPoint, ...]
    older: int
    damaged: tuple[int, ...]


def size_classes(snapshot: Snapshot) -> tuple[SizeClass, ...]:
    """Return the fragments by the power of ten of their rows; classes without one are omitted."""
    by_power: dict[int | None, list[int]] = {}
    for fragment in snapshot.manifest.fragments:
        rows = fragment.physical_rows or 0
        deleted = rows - (rows if fragment.live_rows is None else fragment.live_rows)
        below = next((power for power in _POWERS if rows < power), None)
        counts = by_power.setdefault(below, [0, 0, 0])
        counts[0] += 1
        counts[1] += rows - deleted
        counts[2] += deleted
    order = [power for power in (*_POWERS, None) if power in by_power]
    return tuple(
        SizeClass(
            below=power,
            fragments=by_power[power][0],
            rows=by_power[power][1],
            deleted_rows=by_power[power][2],
        )
        for power in order
    )


def size_label(size: SizeClass) -> str:
    """Return the bound of a class for people."""
    return "larger" if size.below is None else f"< {size.below:,}"


def growth(newest: Snapshot, most: int | None) -> VersionGrowth:
    """Return the last versions, at most `most`."""
    names = version_names(newest)
    count = len(names) if most is None else min(most, len(names))
    # The first is compared with the one before it.
    entries = list(islice(log_entries(newest, names[: count + 1]), count))[::-1]
    return VersionGrowth(
        points=tuple(
            GrowthPoint(
                version=entry.version,
                operation=record_of(entry.transaction).name,
                rows=history.version_rows(entry.snapshot) or 0,
                data_bytes=entry.counts.total_files_size,
                fragments=entry.counts.total_fragments,
            )
            for entry in entries
            if entry.snapshot is not None and entry.counts is not None
        ),
        older=len(names) - count,
        damaged=tuple(entry.version for entry in entries if entry.snapshot is None),
    )
