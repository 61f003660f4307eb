"""Values that describe indices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, TypedDict
from uuid import UUID

from pyroaring import BitMap

from lancelake.core.table import Table
from lancelake.core.values.metadata import (
    BaseId,
    FieldId,
    FragmentId,
    IndexDetails,
    IndexMetadata,
    Manifest,
    Schema,
    Snapshot,
    Version,
    index_meta,
    size,
)
from lancelake.core.values.metadata import IndexFile as FileEntry
from lancelake.errors import CorruptTableError, InvalidRequestError, UnsupportedError
from lancelake.pylance._values.row_sequences import Bitmap

Json = Any  # whatever `json` can carry

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class SupportedDistributedIndices(str, Enum):  # noqa: UP042  # prints as pylance's
    """Types of indices whose segments several workers can build."""

    BTREE = "BTREE"
    INVERTED = "INVERTED"
    IVF_FLAT = "IVF_FLAT"
    IVF_PQ = "IVF_PQ"
    IVF_SQ = "IVF_SQ"
    VECTOR = "VECTOR"


@dataclass
class IndexConfig:
    """A kind of index, and the parameters that it is built with."""

    index_type: str
    parameters: dict[str, Any]


@dataclass
class IndexFile:
    """A file of an index segment."""

    path: str
    size_bytes: int


@dataclass
class Index:
    """One segment of an index in a transaction."""

    uuid: str
    name: str
    fields: list[int]
    dataset_version: int
    fragment_ids: Iterable[int]
    index_version: int
    created_at: datetime | None = None
    base_id: int | None = None
    files: list[IndexFile] | None = None
    index_details: tuple[str, bytes] | None = None
    covering_fields: list[int] = field(default_factory=list)
    _source: IndexMetadata | None = field(default=None, kw_only=True, repr=False, compare=False)


class IndexInformation(TypedDict):
    """One segment of an index, as `list_indices` returns it."""

    name: str
    type: str
    uuid: str
    fields: list[str]
    version: int
    fragment_ids: Bitmap
    base_id: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSegmentDescription:
    """One segment of an index, as `describe_indices` returns it."""

    uuid: str
    dataset_version_at_last_update: int
    fragment_ids: Bitmap
    index_version: int
    created_at: datetime | None
    size_bytes: int | None
    base_id: int | None
    covering_fields: list[int]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class IndexDescription:
    """All segments of one index, as `describe_indices` returns it."""

    name: str
    type_url: str
    index_type: str
    num_rows_indexed: int
    fields: list[int]
    field_names: list[str]
    segments: list[IndexSegmentDescription]
    details: dict[str, Json]
    total_size_bytes: int | None

    def __repr__(self) -> str:
        names = ", ".join(f'"{name}"' for name in self.field_names)
        total = self.total_size_bytes
        shown = "" if total is None else f", total_size_bytes={total}"
        return (
            f"IndexDescription(name='{self.name}', type_url='{self.type_url}', "
            f"num_rows_indexed={self.num_rows_indexed}, fields={self.fields}, "
            f"field_names=[{names}], num_segments={len(self.segments)}{shown})"
        )


INDEX_HEADER = ("index", "kind", "columns", "rows indexed", "segments", "size")
SEGMENT_HEADER = ("index", "kind", "columns", "fragments", "version")


def index_cells(index: IndexDescription) -> tuple[object, ...]:
    """Return an index for a table in a notebook."""
    stored = "" if index.total_size_bytes is None else size(index.total_size_bytes)
    counts = f"{index.num_rows_indexed:,}", len(index.segments)
    return (index.name, index.index_type, ", ".join(index.field_names), *counts, stored)


def segment_cells(segment: IndexInformation) -> tuple[object, ...]:
    """Return a segment of an index for a table in a notebook."""
    names = segment["name"], segment["type"], ", ".join(segment["fields"])
    return (*names, f"{len(segment['fragment_ids']):,}", segment["version"])


def from_index(entry: IndexMetadata) -> Index:
    """Create it from an index entry of the format."""
    details = entry.details
    files = [IndexFile(file.path, file.size_bytes) for file in entry.files]
    return Index(
        str(entry.uuid),
        entry.name,
        list(entry.fields),
        entry.dataset_version,
        Bitmap(entry.fragments() or ()),
        entry.index_version or 0,
        _created_at(entry),
        entry.base_id,
        files or None,
        None if details is None else (details.type_url, details.value),
        _source=entry,
    )


def to_index(index: Index) -> IndexMetadata:
    """Return the index entry of the format, including fields without a public attribute."""
    if index.covering_fields:
        raise UnsupportedError("covering fields of an index are not supported")
    base_id, details = index.base_id, index.index_details
    entry = IndexMetadata(
        uuid=to_uuid(index.uuid),
        name=index.name,
        fields=tuple(FieldId(i) for i in index.fields),
        dataset_version=Version(index.dataset_version),
        fragment_bitmap=_bitmap(index.fragment_ids),
        details=None if details is None else IndexDetails(type_url=details[0], value=details[1]),
        index_version=index.index_version,
        created_at_ms=_milliseconds(index.created_at),
        base_id=None if base_id is None else BaseId(base_id),
        files=tuple(FileEntry(path=f.path, size_bytes=f.size_bytes) for f in index.files or ()),
    )
    return entry if index._source is None else _complete(entry, index._source)


def to_uuid(text: str) -> UUID:
    """Parse a uuid."""
    try:
        return UUID(str(text))
    except ValueError as error:
        raise InvalidRequestError(f"Invalid UUID: {text!r}", found=text) from error


def describe(
    indices: Iterable[IndexMetadata],
    manifest: Manifest,
    *,
    coverage: Mapping[UUID, Set[int]] | None = None,
    kinds: Mapping[UUID, str] | None = None,
) -> list[IndexDescription]:
    """Describe the indices of a version, by name.

    `coverage` has the fragments of segments whose entry is out of date; `kinds` has the types of
    vector indices whose entry does not record it. Fragments without a row count add nothing to
    `num_rows_indexed`.
    """
    by_name: dict[str, list[IndexMetadata]] = {}
    for entry in indices:
        by_name.setdefault(entry.name, []).append(entry)
    live = {fragment.id: fragment.live_rows or 0 for fragment in manifest.fragments}
    shown = _Shown(schema=manifest.schema, live=live, coverage=coverage or {}, kinds=kinds or {})
    return [shown.index(by_name[name]) for name in sorted(by_name)]


def inform(
    indices: Iterable[IndexMetadata],
    manifest: Manifest,
    *,
    coverage: Mapping[UUID, Set[int]] | None = None,
    kinds: Mapping[UUID, str] | None = None,
) -> list[IndexInformation]:
    """List the segments of all indices of a version; takes the arguments of `describe`."""
    return [
        IndexInformation(
            name=index.name,
            type=index.index_type,
            uuid=segment.uuid,
            fields=index.field_names,
            version=segment.dataset_version_at_last_update,
            fragment_ids=segment.fragment_ids,
            base_id=segment.base_id,
        )
        for index in describe(indices, manifest, coverage=coverage, kinds=kinds)
        for segment in index.segments
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """Additional inputs of descriptions besides the entries."""

    schema: Schema
    live: Mapping[FragmentId, int]
    coverage: Mapping[UUID, Set[int]]
    kinds: Mapping[UUID, str]

    def index(self, entries: Sequence[IndexMetadata]) -> IndexDescription:
        first = entries[0]
        kind, details = index_meta.describe(first.details)
        segments = [self.segment(entry) for entry in entries]
        covered = set[int]().union(*(segment.fragment_ids for segment in segments))
        sizes = [segment.size_bytes for segment in segments if segment.size_bytes is not None]
        return IndexDescription(
            name=first.name,
            type_url="" if first.details is None else first.details.type_url,
            index_type=kind or self.kinds.get(first.uuid, index_meta.UNKNOWN),
            num_rows_indexed=sum(self.live.get(FragmentId(i), 0) for i in covered),
            fields=list(first.fields),
            field_names=[self.schema.path_of(i) or str(i) for i in first.fields],
            segments=segments,
            details=dict(details),
            total_size_bytes=sum(sizes) if len(sizes) == len(segments) else None,
        )

    def segment(self, entry: IndexMetadata) -> IndexSegmentDescription:
        return IndexSegmentDescription(
            uuid=str(entry.uuid),
            dataset_version_at_last_update=entry.dataset_version,
            fragment_ids=Bitmap(self.coverage.get(entry.uuid, entry.fragments() or ())),
            index_version=entry.index_version or 0,
            created_at=_created_at(entry),
            size_bytes=sum(file.size_bytes for file in entry.files) if entry.files else None,
            base_id=entry.base_id,
            covering_fields=[],
        )


def _complete(entry: IndexMetadata, source: IndexMetadata) -> IndexMetadata:
    """Restore from the source the fields without a public attribute."""
    is_covered = set(source.fragments() or ()) == set(entry.fragments() or ())
    is_version = (source.index_version or 0) == entry.index_version
    return replace(
        entry,
        fragment_bitmap=source.fragment_bitmap if is_covered else entry.fragment_bitmap,
        index_version=source.index_version if is_version else entry.index_version,
        unknown=source.unknown,
    )


def _bitmap(fragment_ids: Iterable[int]) -> bytes:
    try:
        return bytes(BitMap(fragment_ids).serialize())
    except (OverflowError, ValueError) as error:
        raise InvalidRequestError(f"fragment ids must be below 2**32: {error}") from error


def _created_at(entry: IndexMetadata) -> datetime | None:
    if entry.created_at_ms is None:
        return None
    try:
        return _EPOCH + entry.created_at_ms * _MILLISECOND
    except OverflowError as error:
        msg = f"index {entry.name!r} was created at {entry.created_at_ms} ms, which is out of range"
        raise CorruptTableError(msg) from error


def _milliseconds(created_at: datetime | None) -> int | None:
    if created_at is None:
        return None
    if created_at.tzinfo is None:
        raise TypeError("created_at must have a time zone")
    return (created_at - _EPOCH) // _MILLISECOND


_NOT_KNOWN = "N/A"


def index_statistics(snapshot: Snapshot, name: str) -> dict[str, Any]:
    """Return the statistics of an index, and those of its segments if its kind is known."""
    coverage = Table(snapshot).indices.coverage_named(name)
    segments = Table(snapshot).indices.statistics(name)
    shown = {} if segments is None else {"indices": segments, "segments": segments}
    # Official releases take the kind from the statistics of the segments.
    is_empty = segments is not None and not any(segments)
    return {
        "index_type": _NOT_KNOWN if is_empty else coverage.kind,
        "name": coverage.name,
        "num_indices": coverage.segments,
        "num_segments": coverage.segments,
        **shown,
        "num_indexed_fragments": coverage.fragments,
        "num_indexed_rows": coverage.rows,
        "num_indexed_rows_per_delta": list(coverage.rows_per_segment),
        "num_unindexed_fragments": coverage.unindexed_fragments,
        "num_unindexed_rows": coverage.unindexed_rows,
        "updated_at_timestamp_ms": coverage.created_at_ms,
    }
