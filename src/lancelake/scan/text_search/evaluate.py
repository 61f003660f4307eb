"""Evaluation of a full text query: the rows that match, with their scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import assert_never

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.format.rowids.segment import U64Array
from lancelake.index.kind import ROW_ID, VALUE
from lancelake.index.row_ids import BoolArray
from lancelake.index.text.analyzer import Analyzer
from lancelake.index.text.expand import term_search
from lancelake.index.text.memory_partition import memory_partition
from lancelake.index.text.partition import TextPartition, missing_positions
from lancelake.index.text.query import Boolean, Boost, Match, MultiMatch, Phrase, TextQuery
from lancelake.index.text.search import corpus_of, search
from lancelake.scan.index_search.sources import named_failures
from lancelake.scan.text_search import scored_rows
from lancelake.scan.text_search.scored_rows import ScoredRows
from lancelake.scan.text_search.sources import (
    WITHOUT_INDEX,
    DocumentRows,
    SearchedColumn,
    document_rows,
    is_within,
    text_column,
)

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
                return self._boosted(query)
            case MultiMatch():
                return scored_rows.best([self.rows(part) for part in query.parts])
            case Boolean():
                return self._boolean(query)
            case _:
                assert_never(query)

    def _boosted(self, query: Boost) -> ScoredRows:
        positive, negative = self.rows(query.positive), self.rows(query.negative)
        return positive.with_those_of([negative.times(-query.negative_boost)])

    def _boolean(self, query: Boolean) -> ScoredRows:
        should = [self.rows(part) for part in query.should]
        if query.must:
            must = [self.rows(part) for part in query.must]
            found = reduce(ScoredRows.within, must)
            found = found.with_those_of([*must[1:], *should])
        else:
            found = scored_rows.summed(should)
        return reduce(ScoredRows.without, map(self.rows, query.must_not), found)

    def _leaf(self, query: Match | Phrase, most: int | None) -> ScoredRows:
        column = self._column(query.column or "")
        uncovered = column.uncovered() if self.covers_all or not column.sources else BitMap()
        found = self._indexed(column, query, most)
        found += self._flat(column, query, uncovered, most)
        if not found:
            return scored_rows.NONE
        rows = ScoredRows.of(
            np.concatenate([part.addresses for part in found]),
            np.concatenate([part.scores for part in found]),
        )
        return rows.times(query.boost if isinstance(query, Match) else 1.0)

    def _column(self, name: str) -> SearchedColumn:
        found = self.columns.get(name)
        if found is None:
            found = self.columns[name] = text_column(self.snapshot, name, self.fragments)
        return found

    def _indexed(
        self, column: SearchedColumn, query: Match | Phrase, most: int | None
    ) -> list[ScoredRows]:
        """Search the index of a column."""
        if not column.sources:
            return []
        found: list[ScoredRows] = []
        with named_failures(column.sources[0].index, WITHOUT_INDEX):
            _ensure_positions(column, query)
            partitions = list(column.partitions())
            stored: list[TextPartition] = [partition for _, partition in partitions]
            wanted = term_search(query, column.analyzer, stored)
            if wanted is None:
                return []
            corpus = corpus_of(stored, wanted.words)
            for source, partition in partitions:
                rows = document_rows(self.snapshot, source, partition)
                hits = search(partition, wanted, corpus, allowed=self._allowed(rows), most=most)
                found.append(ScoredRows(rows.addresses[hits.documents], hits.scores))
        return found

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
            yield self._allowed_rows(batch)
        if self.others is not None:
            texts = self.others.column(column.name).combine_chunks()
            addresses = self.others.column(ROW_ID).combine_chunks()
            yield pa.RecordBatch.from_arrays([texts, addresses], [VALUE, ROW_ID])

    def _allowed_rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that may be found; others do not count as documents, either."""
        if self.allowed is None:
            return batch
        kept = self.allowed(np.asarray(batch.column(ROW_ID), dtype=np.uint64))
        return batch.filter(pa.array(kept))


def _ensure_positions(column: SearchedColumn, query: Match | Phrase) -> None:
    if isinstance(query, Phrase) and not column.parameters.with_position:
        raise missing_positions()
