"""Partition in memory: texts that no index covers, prepared for one search."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.index.kind import ROW_ID, VALUE
from lancelake.index.text.analyzer import Analyzer
from lancelake.index.text.collected import CollectedTerms, PartitionContent
from lancelake.index.text.documents import documents
from lancelake.index.text.partition import Documents, TermPosting
from lancelake.index.text.terms import SortedTerms

U32 = npt.NDArray[np.uint32]


class MemoryPartition:
    """The terms of some texts."""

    key: None = None

    def __init__(self, content: PartitionContent) -> None:
        self._content = content
        self.documents = Documents.of(content.ids, content.lengths)
        numbers = np.arange(len(content.words), dtype=np.uint32)
        self.terms = SortedTerms(content.words, numbers)
        self._occurrences = np.concatenate(
            [np.zeros(1, np.int64), np.cumsum(content.lists.frequencies, dtype=np.int64)]
        )

    def _bounds(self, number: int) -> tuple[int, int]:
        ends = self._content.lists.ends
        return (int(ends[number - 1]) if number else 0), int(ends[number])

    def frequency(self, number: int) -> int:
        """Return how many documents have a term."""
        low, high = self._bounds(number)
        return high - low

    def posting(self, number: int) -> TermPosting:
        """Return the documents of a term."""
        part = slice(*self._bounds(number))
        lists = self._content.lists
        return TermPosting(lists.documents[part], lists.frequencies[part])

    def positions(self, number: int) -> U32:
        """Return the positions of a term in its documents."""
        low, high = self._bounds(number)
        found = self._content.positions
        if found is None:
            return np.zeros(0, np.uint32)
        return found[self._occurrences[low] : self._occurrences[high]]


def memory_partition(
    analyzer: Analyzer,
    batches: Iterable[pa.RecordBatch],
    *,
    with_position: bool,
    only: Collection[str] | None = None,
) -> MemoryPartition | None:
    """Return the terms of rows, in batches of texts and row ids; None if there are none.

    With `only`, no other terms are kept: memory grows with the rows, not with their texts.
    """
    pending = CollectedTerms(with_position=with_position)
    wanted = None if only is None else [analyzer.number_of(term) for term in only]
    for batch in batches:
        rows = batch.filter(batch.column(VALUE).is_valid())
        found = analyzer.occurrences(documents(rows.column(VALUE)))
        ids = np.asarray(rows.column(ROW_ID), dtype=np.uint64)
        lengths = np.bincount(found.texts, minlength=len(ids)).astype(np.uint32)
        kept = slice(None) if wanted is None else np.isin(found.terms, wanted)
        pending.collect(found.terms[kept], found.texts[kept], found.positions[kept])
        pending.add_documents(ids, lengths)
    content = pending.taken(analyzer.terms)
    return None if content is None else MemoryPartition(content)
