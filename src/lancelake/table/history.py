"""History of a table: its versions, and what each changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import repeat

from lancelake.caches import CacheKind
from lancelake.commit.external_store import ExternalHandler
from lancelake.commit.snapshot import Snapshot
from lancelake.commit.versions import list_versions, open_line
from lancelake.errors import LanceTableError, ObjectNotFoundError, VersionNotFoundError
from lancelake.format import layout
from lancelake.format.fragment import Fragment
from lancelake.format.fragment_list import FragmentList
from lancelake.format.frozen import parse
from lancelake.format.ids import is_detached
from lancelake.format.layout import parse_manifest_name
from lancelake.format.manifest import ensure_readable
from lancelake.format.operations import DataReplacement, Operation, Rewrite
from lancelake.format.version_outline import VersionOutline, decode
from lancelake.proto import table_pb2
from lancelake.storage.location import Location
from lancelake.threads import Pool

_LOCAL = {"file", "memory"}
# Number of manifests requested in parallel from a store with high latency.
_REQUESTS = 32
_MOST_KNOWN = 100_000
_KINDS_OF_COUNTS = 5
_Counts = tuple[int, int, int, int, int]
"""Files, their bytes, deletion files, rows and deleted rows of a fragment."""

_Seen = tuple[str, str, str | None]
"""Key of a manifest: its table, its path, and its identity under that name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionSummary:
    """Statistics of a version from its manifest; missing counts are zero."""

    total_fragments: int
    total_data_files: int
    total_files_size: int
    total_deletion_files: int
    total_data_file_rows: int
    total_deletion_file_rows: int

    @property
    def total_rows(self) -> int:
        """Live rows."""
        return self.total_data_file_rows - self.total_deletion_file_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionFacts:
    """Statistics of a version."""

    version: int
    timestamp_ns: int | None
    summary: VersionSummary


FACTS: CacheKind[_Seen, VersionFacts] = CacheKind(
    name="version_facts", most_bytes=64 << 20, weight=lambda _: 512, most_values=_MOST_KNOWN
)


def history(location: Location, *, newest_first: bool = False) -> Iterator[Snapshot]:
    """Yield every existing version, one at a time."""
    names = list_versions(location)
    for name in reversed(names) if newest_first else names:
        try:
            yield Snapshot.load(location, name)
        except VersionNotFoundError:
            # Cleaned up since the versions were listed.
            continue


def history_in_numbers(location: Location) -> list[VersionFacts]:
    """Return every existing version, oldest first.

    Little of each manifest is decoded, and nothing of those that this process has already read.
    """
    line = open_line(location)
    if isinstance(line.handler, ExternalHandler):
        # A version recorded by the commit service is listed under its own name.
        line.handler.latest()
    cache = location.session.caches[FACTS]
    facts_of: dict[_Seen, VersionFacts | None] = {}
    for info in line.store.list(layout.VERSIONS):
        seen = (location.uri, info.path, info.e_tag)
        facts_of[seen] = cache.peek(seen) if info.e_tag is not None else None
    unknown = [seen for seen, facts in facts_of.items() if facts is None and _is_attached(seen[1])]
    sums = FragmentSums()
    for seen, data in _manifests(location, unknown):
        facts = _facts(location, seen[1], data, sums)
        facts_of[seen] = cache.get(seen, partial(_same, facts))
    # Both names of a version that is being renamed have the same content.
    every = {facts.version: facts for facts in facts_of.values() if facts is not None}
    return [every[version] for version in sorted(every)]


def summarize(snapshot: Snapshot) -> VersionSummary:
    """Compute the statistics of a version."""
    fragments = snapshot.manifest.fragments
    deletions = [f.deletion_file for f in fragments if f.deletion_file is not None]
    return VersionSummary(
        total_fragments=len(fragments),
        total_data_files=sum(len(f.files) for f in fragments),
        total_files_size=sum(file.file_size_bytes or 0 for f in fragments for file in f.files),
        total_deletion_files=len(deletions),
        total_data_file_rows=sum(f.physical_rows or 0 for f in fragments),
        total_deletion_file_rows=sum(d.num_deleted_rows or 0 for d in deletions),
    )


def facts_of(snapshot: Snapshot) -> VersionFacts:
    """Return the statistics of a version."""
    return VersionFacts(
        version=snapshot.version,
        timestamp_ns=snapshot.manifest.timestamp_ns,
        summary=summarize(snapshot),
    )


class FragmentSums:
    """Sums over fragments; those that many versions share are decoded once."""

    def __init__(self) -> None:
        self._known: dict[bytes, _Counts] = {}
        self._last: tuple[frozenset[bytes], VersionSummary] = (
            frozenset(),
            self._total((), trusts=True),
        )

    def of_snapshot(self, snapshot: Snapshot) -> VersionSummary:
        """Compute the statistics of a version from those of the one before in the calls."""
        payloads = FragmentList.of(snapshot.manifest.fragments).payloads()
        entries = frozenset(payloads)
        last, total = self._last
        if len(entries) < len(payloads):
            return self._total(payloads, trusts=True)
        come = self._total([*(entries - last)], trusts=True)
        gone = self._total([*(last - entries)], trusts=True)
        sums = {
            f.name: getattr(total, f.name) + getattr(come, f.name) - getattr(gone, f.name)
            for f in fields(VersionSummary)
        }
        self._last = entries, VersionSummary(**sums)
        return self._last[1]

    def of(self, outline: VersionOutline) -> VersionSummary:
        """Compute the statistics of an outline; counts of the oldest writers are ignored."""
        return self._total(outline.fragments, trusts=outline.names_writer)

    def _total(self, fragments: Sequence[bytes], *, trusts: bool) -> VersionSummary:
        counts = [self._known.get(each) or self._counted(each) for each in fragments]
        columns = zip(*counts, strict=True) if counts else repeat((), _KINDS_OF_COUNTS)
        files, size, deletions, rows, deleted = map(sum, columns)
        return VersionSummary(
            total_fragments=len(counts),
            total_data_files=files,
            total_files_size=size,
            total_deletion_files=deletions,
            total_data_file_rows=rows if trusts else 0,
            total_deletion_file_rows=deleted if trusts else 0,
        )

    def _counted(self, encoded: bytes) -> _Counts:
        message = table_pb2.DataFragment()
        parse(message, encoded, what="fragment")
        has_deletions = message.HasField("deletion_file")
        counts = (
            len(message.files),
            sum(file.file_size_bytes for file in message.files),
            int(has_deletions),
            message.physical_rows,
            message.deletion_file.num_deleted_rows if has_deletions else 0,
        )
        self._known[encoded] = counts
        return counts


def _is_attached(path: str) -> bool:
    name = parse_manifest_name(path.rpartition("/")[2])
    return name is not None and not is_detached(name.version)


def _manifests(location: Location, wanted: Sequence[_Seen]) -> Iterator[tuple[_Seen, bytes]]:
    read = partial(_manifest, location)
    if location.scheme in _LOCAL:
        yield from (pair for pair in map(read, wanted) if pair is not None)
        return
    with Pool(_REQUESTS) as pool:
        yield from (pair for pair in pool.map(read, wanted) if pair is not None)


def _manifest(location: Location, seen: _Seen) -> tuple[_Seen, bytes] | None:
    try:
        return seen, location.store.get(seen[1])
    except ObjectNotFoundError:
        # Cleaned up since the versions were listed.
        return None


def _facts(location: Location, path: str, data: bytes, sums: FragmentSums) -> VersionFacts:
    try:
        outline = decode(data)
        ensure_readable(outline.reader_feature_flags)
        summary = sums.of(outline)
    except LanceTableError as error:
        name = parse_manifest_name(path.rpartition("/")[2])
        version = None if name is None else name.version
        raise error.at(location.uri, version) from error.__cause__
    return VersionFacts(version=outline.version, timestamp_ns=outline.timestamp_ns, summary=summary)


def _same(facts: VersionFacts) -> VersionFacts:
    return facts


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionDelta:
    """Rows and fragments added and removed; rows are None if the manifests do not record them."""

    rows_added: int | None
    rows_removed: int | None
    fragments_added: int
    fragments_removed: int


def change(before: Snapshot | None, after: Snapshot, operation: Operation | None) -> VersionDelta:
    """Compare a version with its predecessor; None if it is the first version.

    Rows that an update moves count as removed and added, rows that a compaction moves do not.
    """
    earlier = FragmentList.of(() if before is None else before.manifest.fragments)
    later = FragmentList.of(after.manifest.fragments)
    # Entries that are identical in both versions are not decoded.
    old = {f.id: f for f in earlier.changed_since(later)}
    new = {f.id: f for f in later.changed_since(earlier)}
    same = {i for i in new if i in old and _is_same(old[i], new[i], operation)}
    gone = [f for i, f in old.items() if i not in same]
    come = [f for i, f in new.items() if i not in same]
    deleted = [_difference(old[i], new[i]) for i in same]
    is_rewrite = isinstance(operation, Rewrite)
    return VersionDelta(
        rows_added=0 if is_rewrite else _total([f.live_rows for f in come], deleted, -1),
        rows_removed=0 if is_rewrite else _total([f.live_rows for f in gone], deleted, 1),
        fragments_added=len(come),
        fragments_removed=len(gone),
    )


def version_rows(snapshot: Snapshot) -> int | None:
    """Count the live rows of a version; None if the manifest does not record them."""
    return FragmentList.of(snapshot.manifest.fragments).live_rows()


def _is_same(old: Fragment, new: Fragment, operation: Operation | None) -> bool:
    """Whether two fragments are the same; an overwrite may reuse ids, so their files must agree."""
    if isinstance(operation, DataReplacement):
        return True
    return not {f.path for f in old.files}.isdisjoint(f.path for f in new.files)


def _difference(old: Fragment, new: Fragment) -> int | None:
    """Count the rows deleted from a fragment; negative if rows came back."""
    before, after = old.num_deleted_rows, new.num_deleted_rows
    return None if before is None or after is None else after - before


def _total(counts: list[int | None], deleted: list[int | None], sign: int) -> int | None:
    parts = counts + [None if n is None else max(0, n * sign) for n in deleted]
    known = [n for n in parts if n is not None]
    return sum(known) if len(known) == len(parts) else None
