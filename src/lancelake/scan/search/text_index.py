"""Full-text search by the segments of an index and by rows it does not cover."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import ColumnNotFoundError, ColumnTypeError, UnsupportedError
from lancelake.expr.condition import Column
from lancelake.format.ids import FragmentId
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.row_address import fragment_of
from lancelake.format.rowids import U64Array
from lancelake.index import cache
from lancelake.index.kind import ROW_ID, VALUE, IdKind, indexed_type
from lancelake.index.row_sets import BoolArray
from lancelake.index.stored_segment import StoredIndices
from lancelake.index.text.analyzer import Analyzer
from lancelake.index.text.build import memory_partition
from lancelake.index.text.kind import INVERTED, TextSegment
from lancelake.index.text.parameters import TextParameters, unsupported
from lancelake.index.text.partition import StoredPartition, missing_positions
from lancelake.index.text.search import TextPartition, corpus_of, search, term_search
from lancelake.index.text.text_columns import (
    DocumentColumn,
    find_text_column,
    is_document,
    text_column_of,
)
from lancelake.index.text.text_query import Boolean, Boost, Match, MultiMatch, Phrase, TextQuery
from lancelake.scan.index_search.sources import IndexSource, IndexSources, naming_index
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
class TextIndex:
    """A segment of the index of a column, which states how texts become terms."""

    name: str
    segment: TextSegment


@dataclass(frozen=True, slots=True)
class SearchedColumn:
    """A column of texts, and the segments of its index."""

    column: DocumentColumn
    snapshot: Snapshot
    index: TextIndex | None
    """The index, whose parameters apply even if it covers no row."""
    sources: tuple[IndexSource, ...]
    """The segments that cover rows."""
    fragments: BitMap
    """The fragments to be searched."""

    @property
    def parameters(self) -> TextParameters:
        """How texts that no segment covers become terms."""
        if self.index is None:
            return _UNINDEXED
        with naming_index(self.index.name, WITHOUT_INDEX):
            return self.index.segment.layout.parameters

    def segments(self) -> Iterator[tuple[IndexSource, TextSegment]]:
        """Yield the segments that cover rows, open."""
        for source in self.sources:
            if isinstance(source.segment, TextSegment):
                yield source, source.segment

    def partitions(self) -> Iterator[tuple[IndexSource, StoredPartition]]:
        """Yield the partitions of all segments."""
        for source, segment in self.segments():
            with naming_index(source.index, WITHOUT_INDEX):
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
            columns=(self.column.source,),
            with_row_address=True,
            fragment_ids=tuple(FragmentId(number) for number in fragments),
        )
        with run(plan(self.snapshot, request)) as reader:
            for batch in reader:
                values = self.column.documents(batch.column(0))
                yield pa.RecordBatch.from_arrays([values, batch.column(1)], [VALUE, ROW_ID])


def text_column(snapshot: Snapshot, name: str, fragments: BitMap) -> SearchedColumn:
    """Return a column of texts; raise if there is none of that name."""
    schema = snapshot.manifest.schema
    column = find_text_column(schema, name)
    if column is None:
        names = ", ".join(schema.names)
        problem = f"column {name!r} does not exist; the table has: {names}"
        raise ColumnNotFoundError(problem, table=snapshot.location.uri, column=name)
    if not is_document(column.dtype):
        problem = f"column {name!r} of type {column.dtype} has no text to search"
        raise ColumnTypeError(problem, table=snapshot.location.uri, column=name)
    path = tuple(field.name for field in column.trail)
    candidates = IndexSources(snapshot).of(Column(path=path, dtype=column.dtype))
    candidates = tuple(source for source in candidates if isinstance(source.segment, TextSegment))
    # Segments of two indices cover the same rows.
    sources_used = tuple(source for source in candidates if source.index == candidates[0].index)
    index = _text_index(snapshot, column, sources_used)
    if index is None:
        _ensure_no_other_terms(snapshot, column.trail[-1].id, name)
    return SearchedColumn(column, snapshot, index, sources_used, fragments)


def _text_index(
    snapshot: Snapshot, column: DocumentColumn, sources: Sequence[IndexSource]
) -> TextIndex | None:
    """Return the text index of a column; None if there is none that is known."""
    for source in sources:
        if isinstance(source.segment, TextSegment):
            return TextIndex(source.index, source.segment)
    stored = StoredIndices(snapshot)
    for entry in snapshot.indices:
        is_own = entry.fields == (column.trail[-1].id,) and not entry.is_system
        if is_own and stored.kind(entry, column.dtype) is INVERTED:
            return TextIndex(entry.name, TextSegment(stored.facts(entry, column.dtype)))
    return None


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
    paths = (_text_path(snapshot, entry) for entry in snapshot.indices)
    return list(dict.fromkeys(path for path in paths if path is not None))


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
    column = text_column_of(snapshot.manifest.schema, field_id) if is_inverted else None
    return None if column is None else column.path


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
            addresses = live_addresses(snapshot, moved)
        else:
            addresses = addresses_of(snapshot, ids)
        live = is_within(addresses, coverage.fragments)
        addresses = np.where(live, addresses, MISSING)
        return DocumentRows(addresses, None if bool(live.all()) else live)

    part = ("addresses", snapshot.manifest_at.uri)
    return cache.kept(partition.key, part, read, lambda rows: 9 * len(rows.addresses))


def is_within(addresses: U64Array, fragments: BitMap) -> BoolArray:
    """Return which addresses are in some fragments."""
    numbers = np.array(fragments, dtype=np.uint64)
    is_there: BoolArray = np.isin(fragment_of(addresses), numbers)
    return is_there


F32 = npt.NDArray[np.float32]

_Join = Callable[[F32, F32], F32]


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """Rows by address, ascending, each with a score."""

    addresses: U64Array
    scores: F32

    @staticmethod
    def of(addresses: U64Array, scores: F32) -> ScoredRows:
        """Return rows in any order, of which none is given twice."""
        # A stable sort merges the ascending rows of partitions.
        order = np.argsort(addresses, kind="stable")
        return ScoredRows(addresses[order], scores[order])

    def __len__(self) -> int:
        return len(self.addresses)

    def times(self, factor: float) -> ScoredRows:
        """Return the rows with their scores multiplied."""
        return (
            self if factor == 1.0 else ScoredRows(self.addresses, self.scores * np.float32(factor))
        )

    def with_those_of(self, others: Sequence[ScoredRows]) -> ScoredRows:
        """Return these rows with the scores of others added where they match, too."""
        scores = self.scores
        for other in others:
            scores = scores + other.scores_at(self.addresses)
        return ScoredRows(self.addresses, scores)

    def scores_at(self, addresses: U64Array) -> F32:
        """Return the scores of rows; 0 for those that are not among these."""
        if not len(self):
            return np.zeros(len(addresses), np.float32)
        rows = np.minimum(np.searchsorted(self.addresses, addresses), len(self) - 1)
        is_there = self.addresses[rows] == addresses
        scores: F32 = np.where(is_there, self.scores[rows], np.float32(0.0))
        return scores

    def within(self, other: ScoredRows) -> ScoredRows:
        """Return the rows that are among others, too."""
        is_common = np.isin(self.addresses, other.addresses, assume_unique=True)
        return ScoredRows(self.addresses[is_common], self.scores[is_common])

    def without(self, other: ScoredRows) -> ScoredRows:
        """Return the rows that are not among others."""
        is_left = ~np.isin(self.addresses, other.addresses, assume_unique=True)
        return ScoredRows(self.addresses[is_left], self.scores[is_left])

    def ranked(self, most: int | None) -> ScoredRows:
        """Return the rows by descending score, those of equal score by address."""
        rows = np.arange(len(self))
        if most is not None and most < len(self) // 4:
            bound = -np.partition(-self.scores, most)[most] if most else np.float32(np.inf)
            rows = np.flatnonzero(self.scores >= bound)
        order = rows[np.argsort(-self.scores[rows], kind="stable")]
        order = order if most is None else order[:most]
        return ScoredRows(self.addresses[order], self.scores[order])


NONE = ScoredRows(np.zeros(0, np.uint64), np.zeros(0, np.float32))


def add_scores(parts: Sequence[ScoredRows]) -> ScoredRows:
    """Return the rows of any part, with the sum of their scores."""
    return _join(parts, lambda some, others: some + others)


def best(parts: Sequence[ScoredRows]) -> ScoredRows:
    """Return the rows of any part, each with the best of its scores."""
    return _join(parts, np.maximum)


def _join(parts: Sequence[ScoredRows], join: _Join) -> ScoredRows:
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return NONE
    rows = np.unique(np.concatenate([part.addresses for part in parts]))
    scores = parts[0].scores_at(rows)
    for part in parts[1:]:
        scores = join(scores, part.scores_at(rows))
    return ScoredRows(rows, scores)


RowTest = Callable[[U64Array], BoolArray]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSearch:
    """A search of some fragments of a version."""

    snapshot: Snapshot
    fragments: BitMap
    covers_all: bool = True
    """Whether rows that no index covers are searched, too."""
    allowed: RowTest | None = None
    """Which rows may be found, by address; None for all."""
    others: pa.Table | None = None
    """Rows besides those of the version, with their addresses, which are searched too."""
    columns: dict[str, SearchedColumn] = field(default_factory=dict)

    def rows(self, query: TextQuery, most: int | None = None) -> ScoredRows:
        """Return the rows that match a query; with `most`, at least that many of the best."""
        match query:
            case Match() | Phrase():
                return self._leaf(query, most)
            case Boost():
                return self._boost(query)
            case MultiMatch():
                return best([self.rows(part) for part in query.parts])
            case Boolean():
                return self._boolean(query)
            case _:
                assert_never(query)

    def _boost(self, query: Boost) -> ScoredRows:
        positive, negative = self.rows(query.positive), self.rows(query.negative)
        return positive.with_those_of([negative.times(-query.negative_boost)])

    def _boolean(self, query: Boolean) -> ScoredRows:
        should = [self.rows(part) for part in query.should]
        if query.must:
            must = [self.rows(part) for part in query.must]
            rows = reduce(ScoredRows.within, must)
            rows = rows.with_those_of([*must[1:], *should])
        else:
            rows = add_scores(should)
        return reduce(ScoredRows.without, map(self.rows, query.must_not), rows)

    def _leaf(self, query: Match | Phrase, most: int | None) -> ScoredRows:
        column = self._column(query.column or "")
        uncovered = column.uncovered() if self.covers_all else BitMap()
        parts = self._search_index(column, query, most)
        parts += self._flat(column, query, uncovered, most)
        if not parts:
            return NONE
        rows = ScoredRows.of(
            np.concatenate([part.addresses for part in parts]),
            np.concatenate([part.scores for part in parts]),
        )
        return rows.times(query.boost if isinstance(query, Match) else 1.0)

    def _column(self, name: str) -> SearchedColumn:
        column = self.columns.get(name)
        if column is None:
            column = self.columns[name] = text_column(self.snapshot, name, self.fragments)
        return column

    def _search_index(
        self, column: SearchedColumn, query: Match | Phrase, most: int | None
    ) -> list[ScoredRows]:
        """Search the index of a column, each segment by its own rules."""
        if not column.sources:
            return []
        parts: list[ScoredRows] = []
        with naming_index(column.sources[0].index, WITHOUT_INDEX):
            _ensure_positions(column, query)
            everything: list[TextPartition] = [each for _, each in column.partitions()]
            for analyzer, searched in _by_rules(column):
                stored: list[TextPartition] = [partition for _, partition in searched]
                wanted = term_search(query, analyzer, stored)
                if wanted is None:
                    continue
                corpus = corpus_of(everything, wanted.words)
                for source, partition in searched:
                    rows = document_rows(self.snapshot, source, partition)
                    hits = search(partition, wanted, corpus, allowed=self._allowed(rows), most=most)
                    parts.append(ScoredRows(rows.addresses[hits.documents], hits.scores))
        return parts

    def _allowed(self, rows: DocumentRows) -> BoolArray | None:
        """Return which documents may be found; None for all."""
        are_all = len(self.fragments) == len(self.snapshot.manifest.fragments)
        if are_all and self.allowed is None:
            return rows.live
        count = len(rows.addresses)
        allowed = np.ones(count, np.bool_) if rows.live is None else rows.live.copy()
        if not are_all:
            allowed &= is_within(rows.addresses, self.fragments)
        if self.allowed is not None:
            allowed[allowed] = self.allowed(rows.addresses[allowed])
        return allowed

    def _flat(
        self,
        column: SearchedColumn,
        query: Match | Phrase,
        fragments: BitMap,
        most: int | None,
    ) -> list[ScoredRows]:
        """Search texts that no index covers, with the statistics of all documents."""
        if not fragments and self.others is None:
            return []
        analyzer = Analyzer(column.parameters)
        terms = {term.text for term in analyzer.query_terms(query.text)}
        is_exact = isinstance(query, Phrase) or query.fuzziness == 0
        if is_exact and not terms:
            return []
        partition = memory_partition(
            analyzer,
            self._documents(column, fragments),
            with_position=isinstance(query, Phrase),
            only=terms if is_exact else None,
        )
        if partition is None:
            return []
        wanted = term_search(query, analyzer, [partition], keeps_exact=True)
        if wanted is None:
            return []
        searched: list[TextPartition] = [stored for _, stored in column.partitions()]
        corpus = corpus_of([*searched, partition], wanted.words)
        hits = search(partition, wanted, corpus, most=most)
        return [ScoredRows(partition.documents.row_ids[hits.documents], hits.scores)]

    def _documents(self, column: SearchedColumn, fragments: BitMap) -> Iterator[pa.RecordBatch]:
        for batch in column.rows(fragments):
            yield self._restrict(batch)
        if self.others is not None:
            values = self.others.column(column.column.source).combine_chunks()
            texts = column.column.documents(values)
            addresses = self.others.column(ROW_ID).combine_chunks()
            yield pa.RecordBatch.from_arrays([texts, addresses], [VALUE, ROW_ID])

    def _restrict(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that may be found; others do not count as documents, either."""
        if self.allowed is None:
            return batch
        is_allowed = self.allowed(np.asarray(batch.column(ROW_ID), dtype=np.uint64))
        return batch.filter(pa.array(is_allowed))


def _by_rules(
    column: SearchedColumn,
) -> list[tuple[Analyzer, list[tuple[IndexSource, StoredPartition]]]]:
    """Return the partitions of segments that divide texts alike, and what does it.

    A release that refreshes an index of another one has other stop words.
    """
    by_parameters: dict[
        TextParameters, tuple[Analyzer, list[tuple[IndexSource, StoredPartition]]]
    ] = {}
    for source, segment in column.segments():
        _, searched = by_parameters.setdefault(segment.layout.parameters, (segment.analyzer, []))
        searched += [(source, partition) for partition in segment.partitions]
    return list(by_parameters.values())


def _ensure_positions(column: SearchedColumn, query: Match | Phrase) -> None:
    segments = (segment for _, segment in column.segments())
    if isinstance(query, Phrase) and not all(s.layout.parameters.with_position for s in segments):
        raise missing_positions()
