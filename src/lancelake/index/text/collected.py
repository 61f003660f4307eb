"""Occurrences of terms, collected text by text and sorted into posting lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.index.row_ids import U64Array
from lancelake.index.text.postings import PostingLists

U32 = npt.NDArray[np.uint32]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PartitionContent:
    """Posting lists of a partition, complete: terms in order, and documents."""

    words: pa.Array
    lists: PostingLists
    positions: U32 | None
    ids: U64Array
    lengths: U32


class CollectedTerms:
    """Occurrences of terms in documents that are not written yet."""

    def __init__(self, *, with_position: bool) -> None:
        self._with_position = with_position
        self._clear()

    def _clear(self) -> None:
        self.size = 0
        self._terms: list[U32] = []
        self._texts: list[U32] = []
        self._places: list[U32] = []
        self._ids: list[U64Array] = []
        self._lengths: list[U32] = []
        self._documents = 0

    def add(self, terms: U32, texts: U32, places: U32, ids: U64Array) -> None:
        """Add the terms of texts, and the rows of the texts."""
        self.collect(terms, texts, places)
        self.add_documents(ids)

    def collect(self, terms: U32, texts: U32, places: U32 | None) -> None:
        """Add terms of texts whose rows are added afterwards."""
        self._terms.append(terms)
        self._texts.append(texts + np.uint32(self._documents))
        if self._with_position and places is not None:
            self._places.append(places)
        self.size += len(terms)

    def add_documents(self, ids: U64Array, lengths: U32 | None = None) -> None:
        """Add the rows of texts, and how many terms each has if not all were added."""
        self._ids.append(ids)
        if lengths is not None:
            self._lengths.append(lengths)
        self._documents += len(ids)

    def taken(self, words: Sequence[str]) -> PartitionContent | None:
        """Return all occurrences as posting lists, and clear them; None if there are none."""
        if not self.size:
            self._clear()
            return None
        terms, texts = np.concatenate(self._terms), np.concatenate(self._texts)
        places = np.concatenate(self._places) if self._with_position else None
        ids = np.concatenate(self._ids)
        lengths = (
            np.concatenate(self._lengths)
            if self._lengths
            else np.bincount(texts, minlength=len(ids)).astype(np.uint32)
        )
        self._clear()
        # A text without a term is not a document.
        numbers = (np.cumsum(lengths > 0) - 1).astype(np.uint32)
        order, rank, sorted_words = _order(terms, words)
        terms, texts = rank[terms[order]], numbers[texts[order]]
        places = None if places is None else places[order]
        is_new = np.ones(len(terms), np.bool_)
        is_new[1:] = (terms[1:] != terms[:-1]) | (texts[1:] != texts[:-1])
        starts = np.flatnonzero(is_new)
        frequencies = np.diff(np.append(starts, len(terms))).astype(np.uint32)
        counts = np.bincount(terms[starts], minlength=len(sorted_words))
        lists = PostingLists(np.cumsum(counts), texts[starts], frequencies)
        kept = lengths > 0
        return PartitionContent(sorted_words, lists, places, ids[kept], lengths[kept])


def _order(terms: U32, words: Sequence[str]) -> tuple[I64, U32, pa.Array]:
    """Return the order of occurrences by term, the place of each term, and the terms in order.

    Terms that do not occur are left out.
    """
    is_used = np.zeros(len(words), np.bool_)
    is_used[terms] = True
    used = np.flatnonzero(is_used)
    chosen = pa.array([words[i] for i in used.tolist()], pa.large_string())
    places = np.asarray(pc.sort_indices(chosen))
    rank = np.zeros(len(words), np.uint32)
    rank[used[places]] = np.arange(len(places), dtype=np.uint32)
    keys = rank[terms]
    # NumPy sorts 16-bit numbers by radix.
    order = np.argsort(keys.astype(np.uint16), kind="stable")
    if len(places) > 1 << 16:
        order = order[np.argsort((keys >> np.uint32(16)).astype(np.uint16)[order], kind="stable")]
    return order, rank, chosen.take(pa.array(places))
