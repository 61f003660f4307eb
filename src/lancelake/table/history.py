"""History of a table: its versions, and what each changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import repeat
from typing import Generic, TypeVar

from lancelake.caches import CacheKind
from lancelake.commit.external_store import ExternalHandler
from lancelake.commit.snapshot import (
    Snapshot,
    branch_location,
    list_branches,
    list_tags,
    list_versions,
    open_line,
)
from lancelake.errors import LanceTableError, ObjectNotFoundError, VersionNotFoundError
from lancelake.format import layout
from lancelake.format.fragment import Fragment
from lancelake.format.fragment_list import FragmentList
from lancelake.format.frozen import parse
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.layout import is_detached, parse_manifest_name
from lancelake.format.manifest import VersionOutline, decode_outline, ensure_readable
from lancelake.format.operations import DataReplacement, Operation, Rewrite
from lancelake.format.schema import Field, Schema
from lancelake.proto import table_pb2
from lancelake.storage.location import Location
from lancelake.threads import Pool

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair(Generic[T]):
    """An item before and after; None where it does not exist."""

    name: str
    before: T | None
    after: T | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """A field of the schema without its children."""

    id: int
    path: str
    type: str
    nullable: bool
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FragmentFacts:
    """Contents of a fragment; counts are None if the manifest does not record them."""

    rows: int | None
    deleted_rows: int | None
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFacts:
    """The segments of an index."""

    segments: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RefsBetween:
    """Tags that refer to a version, and branches forked from it."""

    tags: tuple[str, ...]
    branches: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """All differences; unchanged items are not listed.

    The refs are those of each of the versions, and do not count as differences.
    """

    refs: Pair[RefsBetween]
    rows: Pair[int]
    columns: tuple[Pair[ColumnFacts], ...]
    config: tuple[Pair[str], ...]
    table_metadata: tuple[Pair[str], ...]
    schema_metadata: tuple[Pair[str], ...]
    features: tuple[Pair[str], ...]
    base_paths: tuple[Pair[str], ...]
    fragments: tuple[Pair[FragmentFacts], ...]
    indices: tuple[Pair[IndexFacts], ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs."""
        lists = (self.columns, self.config, self.table_metadata, self.schema_metadata)
        more = (self.features, self.base_paths, self.fragments, self.indices)
        return self.rows.before == self.rows.after and not any(lists) and not any(more)


def diff(before: Snapshot, after: Snapshot) -> Diff:
    """Compare two versions, which need not be consecutive, by their manifests."""
    old, new = before.manifest, after.manifest
    return Diff(
        refs=Pair(name="refs", before=_refs(before), after=_refs(after)),
        rows=Pair(name="rows", before=version_rows(before), after=version_rows(after)),
        columns=column_changes(old.schema, new.schema),
        config=_pairs(old.config, new.config),
        table_metadata=_pairs(old.table_metadata, new.table_metadata),
        schema_metadata=_pairs(_texts(old.schema.metadata), _texts(new.schema.metadata)),
        features=_pairs(_features(before), _features(after)),
        base_paths=_pairs(_bases(before), _bases(after)),
        fragments=_fragments(before, after),
        indices=_pairs(_indices(before), _indices(after)),
    )


def _pairs(old: Mapping[str, T], new: Mapping[str, T]) -> tuple[Pair[T], ...]:
    """Pair the items that differ, in name order."""
    names = sorted({*old, *new})
    pairs = (Pair(name=n, before=old.get(n), after=new.get(n)) for n in names)
    return tuple(pair for pair in pairs if pair.before != pair.after)


def column_changes(old: Schema, new: Schema) -> tuple[Pair[ColumnFacts], ...]:
    """Pair columns by id, so that a renamed column counts as changed."""
    before, after = _by_id(old), _by_id(new)
    pairs = (
        Pair(name=(after.get(i) or before[i]).path, before=before.get(i), after=after.get(i))
        for i in sorted({*before, *after})
    )
    return tuple(pair for pair in pairs if pair.before != pair.after)


def _by_id(schema: Schema) -> dict[int, ColumnFacts]:
    return {field.id: _column(schema, field) for field in schema.walk()}


def _column(schema: Schema, field: Field) -> ColumnFacts:
    return ColumnFacts(
        id=field.id,
        path=schema.path_of(field.id) or field.name,
        type=field.logical_type,
        nullable=field.nullable,
        metadata=_texts(field.metadata),
    )


def _fragments(before: Snapshot, after: Snapshot) -> tuple[Pair[FragmentFacts], ...]:
    """Pair fragments by id; fragments without a common file are different ones with the same id."""
    earlier = FragmentList.of(before.manifest.fragments)
    later = FragmentList.of(after.manifest.fragments)
    # Entries that are identical in both versions are not decoded.
    old = {f.id: f for f in earlier.changed_since(later)}
    new = {f.id: f for f in later.changed_since(earlier)}
    pairs: list[Pair[FragmentFacts]] = []
    for number in sorted({*old, *new}):
        was, became = (_version_facts(f) for f in (old.get(number), new.get(number)))
        if was == became:
            continue
        if was and became and set(was.files).isdisjoint(became.files):
            pairs.append(Pair(name=str(number), before=was, after=None))
            pairs.append(Pair(name=str(number), before=None, after=became))
        else:
            pairs.append(Pair(name=str(number), before=was, after=became))
    return tuple(pairs)


def _version_facts(fragment: Fragment | None) -> FragmentFacts | None:
    if fragment is None:
        return None
    return FragmentFacts(
        rows=fragment.live_rows,
        deleted_rows=fragment.num_deleted_rows,
        files=tuple(file.path for file in fragment.files),
    )


def _indices(snapshot: Snapshot) -> dict[str, IndexFacts]:
    by_name: dict[str, list[IndexMetadata]] = {}
    for index in snapshot.indices:
        by_name.setdefault(index.name, []).append(index)
    schema = snapshot.manifest.schema
    return {
        name: IndexFacts(
            segments=tuple(sorted(str(s.uuid) for s in segments)),
            columns=tuple(schema.path_of(i) or str(i) for i in segments[0].fields),
        )
        for name, segments in by_name.items()
    }


def _refs(snapshot: Snapshot) -> RefsBetween:
    main = snapshot.main_location
    line = branch_location(main, snapshot.branch)
    tags = {n: (t.branch, t.version) for n, t in list_tags(main).items()}
    forks = {n: (b.parent_branch, b.parent_version) for n, b in list_branches(main).items()}

    def here(places: Mapping[str, tuple[str | None, int]]) -> tuple[str, ...]:
        return tuple(
            name
            for name, (branch, version) in places.items()
            if version == snapshot.version and branch_location(main, branch) == line
        )

    return RefsBetween(tags=here(tags), branches=here(forks))


def _features(snapshot: Snapshot) -> dict[str, str]:
    manifest = snapshot.manifest
    return {
        "data_file_version": manifest.data_version.value,
        "reader_flags": str(manifest.reader_feature_flags),
        "stable_row_ids": "yes" if manifest.has_stable_row_ids else "no",
        "writer_flags": str(manifest.writer_feature_flags),
    }


def _bases(snapshot: Snapshot) -> dict[str, str]:
    return {str(base.id): base.path for base in snapshot.manifest.base_paths}


def _texts(metadata: Mapping[str, bytes]) -> dict[str, str]:
    return {key: value.decode(errors="replace") for key, value in metadata.items()}


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
        outline = decode_outline(data)
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
