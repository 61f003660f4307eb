"""Sources of a text search: the segments of the index, and rows that none of them covers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import ColumnNotFoundError, ColumnTypeError, UnsupportedError
from lancelake.expr.condition import Column
from lancelake.format.ids import FragmentId
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.row_address import fragment_of
from lancelake.format.rowids.segment import U64Array
from lancelake.index import cache
from lancelake.index.kind import ROW_ID, VALUE, IdKind
from lancelake.index.row_ids import BoolArray
from lancelake.index.stored_segment import StoredIndices, indexed_type
from lancelake.index.text.analyzer import Analyzer
from lancelake.index.text.documents import is_document
from lancelake.index.text.kind import INVERTED, TextSegment
from lancelake.index.text.parameters import TextParameters, unsupported
from lancelake.index.text.partition import StoredPartition
from lancelake.scan.index_search.sources import IndexSource, IndexSources, named_failures
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.row_lookup import MISSING, addresses_of, live_addresses
from lancelake.scan.stream import run

WITHOUT_INDEX = "Build the index again, or drop it to search all texts."
# Texts of a column without an index are only divided into words, as in official releases.
_UNINDEXED = TextParameters(
    max_token_length=None,
    lower_case=False,
    stem=False,
    remove_stop_words=False,
    ascii_folding=False,
)


@dataclass(frozen=True, slots=True)
class SearchedColumn:
    """A column of texts, and the segments of its index."""

    name: str
    snapshot: Snapshot
    sources: tuple[IndexSource, ...]
    fragments: BitMap
    """The fragments to be searched."""

    @property
    def segments(self) -> list[TextSegment]:
        """The segments, open."""
        return [s.segment for s in self.sources if isinstance(s.segment, TextSegment)]

    @property
    def parameters(self) -> TextParameters:
        """How texts become terms."""
        if not self.sources:
            return _UNINDEXED
        with named_failures(self.sources[0].index, WITHOUT_INDEX):
            return self.segments[0].layout.parameters

    @property
    def analyzer(self) -> Analyzer:
        """What divides queries into terms."""
        if not self.sources:
            return Analyzer(self.parameters)
        with named_failures(self.sources[0].index, WITHOUT_INDEX):
            return self.segments[0].analyzer

    def partitions(self) -> Iterator[tuple[IndexSource, StoredPartition]]:
        """Yield the partitions of all segments."""
        for source, segment in zip(self.sources, self.segments, strict=True):
            with named_failures(source.index, WITHOUT_INDEX):
                partitions = segment.partitions
            for partition in partitions:
                yield source, partition

    def uncovered(self) -> BitMap:
        """Return the fragments that no segment covers."""
        covered = (source.coverage.fragments for source in self.sources)
        return self.fragments - BitMap.union(BitMap(), *covered)

    def rows(self, fragments: BitMap) -> Iterator[pa.RecordBatch]:
        """Yield texts and addresses of the live rows of fragments."""
        if not fragments:
            return
        request = ScanRequest(
            columns=(self.name,),
            with_row_address=True,
            fragment_ids=tuple(FragmentId(number) for number in fragments),
        )
        with run(plan(self.snapshot, request)) as reader:
            for batch in reader:
                values = batch.column(0)
                if isinstance(values, pa.ExtensionArray):
                    values = values.storage
                yield pa.RecordBatch.from_arrays([values, batch.column(1)], [VALUE, ROW_ID])


def text_column(snapshot: Snapshot, name: str, fragments: BitMap) -> SearchedColumn:
    """Return a column of texts; raise if there is none of that name."""
    schema = snapshot.manifest.schema
    trail = schema.find(name)
    if trail is None:
        known = ", ".join(schema.names)
        problem = f"column {name!r} does not exist; the table has: {known}"
        raise ColumnNotFoundError(problem, table=snapshot.location.uri, column=name)
    dtype = indexed_type(trail[-1])
    if not is_document(dtype):
        problem = f"column {name!r} of type {dtype} has no text to search"
        raise ColumnTypeError(problem, table=snapshot.location.uri, column=name)
    column = Column(path=tuple(field.name for field in trail), dtype=dtype)
    found = [s for s in IndexSources(snapshot).of(column) if isinstance(s.segment, TextSegment)]
    # Segments of two indices cover the same rows.
    chosen = tuple(source for source in found if source.index == found[0].index)
    if not chosen:
        _ensure_no_other_terms(snapshot, trail[-1].id, name)
    return SearchedColumn(name, snapshot, chosen, fragments)


def _ensure_no_other_terms(snapshot: Snapshot, field_id: int, column: str) -> None:
    """Raise if a column has an index whose terms are not known here.

    Without the index, its texts would be divided into other terms.
    """
    for entry in snapshot.indices:
        is_text = entry.details is not None and entry.details.kind == INVERTED.details_type
        if entry.details is None or not is_text or field_id not in entry.fields:
            continue
        reason = unsupported(entry.details)
        if reason is not None:
            raise UnsupportedError(
                f"index {entry.name!r} of column {column!r} has {reason}, which is not supported",
                action=WITHOUT_INDEX,
                table=snapshot.location.uri,
                index=entry.name,
            )


def indexed_columns(snapshot: Snapshot) -> list[str]:
    """Return the columns that have a text index."""
    found = (_text_path(snapshot, entry) for entry in snapshot.indices)
    return list(dict.fromkeys(path for path in found if path is not None))


def _text_path(snapshot: Snapshot, entry: IndexMetadata) -> str | None:
    """Return the column of a text index; without details, its files have the kind."""
    field_id = entry.fields[0] if entry.fields and not entry.is_system else None
    field = None if field_id is None else snapshot.manifest.schema.by_id().get(field_id)
    if field is None or field_id is None:
        return None
    if entry.details is None:
        kind = StoredIndices(snapshot).recorded_kind(entry, indexed_type(field))
        is_inverted = kind is INVERTED
    else:
        is_inverted = entry.details.kind == INVERTED.details_type
    return snapshot.manifest.schema.path_of(field_id) if is_inverted else None


@dataclass(frozen=True, slots=True)
class DocumentRows:
    """The addresses of documents; `MISSING` for those that must not be found."""

    addresses: U64Array
    live: BoolArray | None
    """Which documents may be found; None for all."""


def document_rows(
    snapshot: Snapshot, source: IndexSource, partition: StoredPartition
) -> DocumentRows:
    """Return the rows of the documents of a partition.

    Those that must not be found were deleted or updated, or are in fragments that are no longer
    covered.
    """

    def read() -> DocumentRows:
        ids = partition.documents.row_ids
        coverage = source.coverage
        if coverage.stored is IdKind.ADDRESS:
            moved = coverage.moves.row_map(ids) if coverage.moves else ids
            found = live_addresses(snapshot, moved)
        else:
            found = addresses_of(snapshot, ids)
        live = is_within(found, coverage.fragments)
        found = np.where(live, found, MISSING)
        return DocumentRows(found, None if bool(live.all()) else live)

    part = ("addresses", snapshot.manifest_at.uri)
    return cache.kept(partition.key, part, read, lambda found: 9 * len(found.addresses))


def is_within(addresses: U64Array, fragments: BitMap) -> BoolArray:
    """Return which addresses are in some fragments."""
    numbers = np.array(fragments, dtype=np.uint64)
    found: BoolArray = np.isin(fragment_of(addresses), numbers)
    return found
