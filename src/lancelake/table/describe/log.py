"""The log of a table: its versions and their operations."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from lancelake.commit.snapshot import Snapshot
from lancelake.commit.versions import list_versions
from lancelake.errors import LanceTableError
from lancelake.format.names import ManifestName
from lancelake.format.operations import Clone
from lancelake.format.refs import Tag
from lancelake.format.transaction import Transaction
from lancelake.storage.location import Location
from lancelake.table.check.refs import CheckedRefs
from lancelake.table.describe import operations
from lancelake.table.describe.documents import Json, document, writer_text
from lancelake.table.history import FragmentSums, VersionSummary
from lancelake.table.reachable.version_lines import KnownRefs
from lancelake.table.version_delta import VersionDelta, change, live_rows

_THREADS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """A version in the log; without a snapshot if its manifest cannot be read."""

    version: int
    snapshot: Snapshot | None = None
    transaction: Transaction | None = None
    change: VersionDelta | None = None
    counts: VersionSummary | None = None
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
    found: dict[int, tuple[str, ...]] = {}
    for label, version in sorted(refs.tagged(branch).items()):
        found[version] = (*found.get(version, ()), label)
    return found


def log_entries(newest: Snapshot, names: list[ManifestName]) -> Iterator[LogEntry]:
    """Yield versions newest first, each compared with the one before it."""
    tagged = tags_of_versions(newest, CheckedRefs.load(newest.main_location).tags)
    yield from line_entries(newest.location, names, tagged)


def line_entries(
    line: Location, names: Sequence[ManifestName], tagged: Mapping[int, tuple[str, ...]]
) -> Iterator[LogEntry]:
    """Yield versions of a line newest first, each compared with the next of the names."""
    pairs = itertools.pairwise(itertools.chain(line_snapshots(line, names), [None]))
    sums = FragmentSums()
    for name, (found, before) in zip(names, pairs, strict=False):
        labels = tagged.get(name.version, ())
        if isinstance(found, Snapshot):
            yield _entry(found, before, sums, labels)
        elif found is not None:
            yield LogEntry(version=name.version, damage=found.problem, tags=labels)


def line_snapshots(
    line: Location, names: Sequence[ManifestName]
) -> Iterator[Snapshot | LanceTableError]:
    """Load versions a few at a time; an error stands for one that cannot be read."""
    with ThreadPoolExecutor(_THREADS) as pool:
        for start in range(0, len(names), _THREADS):
            yield from pool.map(partial(_loaded, line), names[start : start + _THREADS])


def _loaded(line: Location, name: ManifestName) -> Snapshot | LanceTableError:
    try:
        return Snapshot.load(line, name)
    except LanceTableError as error:
        return error


def _entry(
    found: Snapshot,
    before: Snapshot | LanceTableError | None,
    sums: FragmentSums,
    tags: tuple[str, ...],
) -> LogEntry:
    transaction = _transaction(found)
    operation = None if transaction is None else transaction.operation
    is_first = found.version == 1 or isinstance(operation, Clone)
    difference = None
    if is_first:
        difference = change(None, found, operation)
    elif isinstance(before, Snapshot) and before.version == found.version - 1:
        difference = change(before, found, operation)
    return LogEntry(
        version=found.version,
        snapshot=found,
        transaction=transaction,
        change=difference,
        counts=sums.of_snapshot(found),
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
    return {
        "version": entry.version,
        "damage": None,
        "tags": list(entry.tags),
        "written_at": manifest.timestamp.isoformat() if manifest.timestamp else None,
        "writer": writer_text(manifest.writer_version),
        "operation": None if operation is None else operations.name(operation),
        "details": None if operation is None else operations.details(operation),
        "message": None if transaction is None else transaction.message,
        "properties": {} if transaction is None else document(transaction.properties),
        "read_version": None if transaction is None else transaction.read_version,
        "rows": live_rows(snapshot),
        "fragments": counts.total_fragments,
        "data_files": counts.total_data_files,
        "data_bytes": counts.total_files_size,
        "change": document(entry.change),
    }
