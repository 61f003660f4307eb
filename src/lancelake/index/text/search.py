"""Search of a partition: the documents that have the terms of a query, and their scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lancelake.index import cache
from lancelake.index.row_ids import BoolArray
from lancelake.index.text.analyzer import QueryTerm
from lancelake.index.text.bm25 import Corpus, document_norms, document_weights
from lancelake.index.text.partition import TextPartition
from lancelake.index.text.phrase import Places, has_phrase
from lancelake.index.text.top_documents import (
    ScoredList,
    best_documents,
    best_having_all,
    having_all,
    scores_of,
    union,
)

U32 = npt.NDArray[np.uint32]
F32 = npt.NDArray[np.float32]

_BLOCK = 128
# So many of the best documents with all terms are searched for a phrase before the others are.
_TRIED = 1 << 11
_TRIED_PER_PHRASE = 32
# Documents are searched for in lists that are longer by so much.
_FEW_PER_LIST = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class TermSearch:
    """Terms that documents must have: one per position, any, all, or as a phrase."""

    terms: tuple[QueryTerm, ...]
    requires_all: bool = False
    slop: int | None = None
    """For a phrase: by how many positions a term may be late."""

    @property
    def words(self) -> tuple[str, ...]:
        """The different terms."""
        return tuple(dict.fromkeys(term.text for term in self.terms))


@dataclass(frozen=True, slots=True)
class Hits:
    """Documents of a partition, ascending, and their scores."""

    documents: U32
    scores: F32

    def only(self, chosen: BoolArray) -> Hits:
        """Return some of the documents."""
        return Hits(self.documents[chosen], self.scores[chosen])


NO_HITS = Hits(np.zeros(0, np.uint32), np.zeros(0, np.float32))


def corpus_of(partitions: Sequence[TextPartition], words: Sequence[str]) -> Corpus:
    """Return the statistics of partitions and of some terms there."""
    return Corpus(
        num_docs=sum(len(partition.documents) for partition in partitions),
        num_tokens=sum(partition.documents.num_tokens for partition in partitions),
        frequencies={
            word: sum(
                partition.frequency(number)
                for partition in partitions
                if (number := partition.terms.number(word)) is not None
            )
            for word in words
        },
    )


def search(
    partition: TextPartition,
    wanted: TermSearch,
    corpus: Corpus,
    *,
    allowed: BoolArray | None = None,
    most: int | None = None,
) -> Hits:
    """Return the allowed documents that match; only the best ones if a number is given."""
    numbers = {word: partition.terms.number(word) for word in wanted.words}
    needs_all = wanted.requires_all or wanted.slop is not None
    if needs_all and not _has_all_positions(wanted, numbers):
        return NO_HITS
    # N-grams share a position, where a repeated one counts once.
    times = Counter(term.text for term in set(wanted.terms))
    lists = {
        word: _scored(partition, number, corpus, corpus.weight(word) * times[word])
        for word, number in numbers.items()
        if number is not None and corpus.weight(word) > 0
    }
    if not lists:
        return NO_HITS
    count = len(partition.documents)
    if not needs_all:
        return Hits(*best_documents(list(lists.values()), count, allowed, most))
    if len(set(wanted.terms)) == len({term.position for term in wanted.terms}):
        documents, scores = _all_single(wanted, list(lists.values()), allowed, most)
    else:
        documents = _having_all(wanted, lists, count)
        documents = documents if allowed is None else documents[allowed[documents]]
        scores = scores_of(list(lists.values()), documents)
    hits = Hits(documents, scores)
    if wanted.slop is None or not len(documents):
        return hits
    places = _places(partition, numbers, lists)
    return _phrases(hits, [(places[t.text], t.position) for t in wanted.terms], wanted.slop, most)


def _all_single(
    wanted: TermSearch, lists: Sequence[ScoredList], allowed: BoolArray | None, most: int | None
) -> tuple[U32, F32]:
    """Return documents that have all terms, one for each position, with their scores."""
    if most is not None and wanted.slop is None:
        best = best_having_all(lists, allowed, most)
        if best is not None:
            return best
    shortest = min((each.documents for each in lists), key=len)
    return having_all(lists, shortest if allowed is None else shortest[allowed[shortest]])


def _phrases(hits: Hits, steps: Sequence[tuple[Places, int]], slop: int, most: int | None) -> Hits:
    """Return the documents that have a phrase; if only the best are wanted, these first."""
    if most is not None:
        tried = max(_TRIED, _TRIED_PER_PHRASE * most)
        if len(hits.scores) > 2 * tried:
            bound = np.partition(hits.scores, len(hits.scores) - tried)[len(hits.scores) - tried]
            best = hits.only(hits.scores >= bound)
            best = best.only(has_phrase(best.documents, steps, slop))
            if len(best.documents) >= most:
                return best
    return hits.only(has_phrase(hits.documents, steps, slop))


def _has_all_positions(wanted: TermSearch, numbers: dict[str, int | None]) -> bool:
    """Whether there is a term for each position."""
    known = {term.position for term in wanted.terms if numbers[term.text] is not None}
    return bool(known) and known == {term.position for term in wanted.terms}


def _scored(partition: TextPartition, number: int, corpus: Corpus, weight: float) -> ScoredList:
    """Return the documents of a term with their shares of its weight."""

    def make() -> tuple[U32, F32, F32, F32 | None]:
        posting = partition.posting(number)
        norms = document_norms(partition.documents.lengths[posting.documents], corpus.mean_length)
        shares = document_weights(posting.frequencies, norms)
        starts = np.arange(0, len(shares), _BLOCK)
        table = None
        if partition.key is not None and len(shares) * _FEW_PER_LIST > len(partition.documents):
            table = np.zeros(len(partition.documents), np.float32)
            table[posting.documents] = shares
        return posting.documents, shares, np.maximum.reduceat(shares, starts), table

    if partition.key is None:
        documents, shares, best, table = make()
    else:
        part = ("shares", number, corpus.mean_length)
        documents, shares, best, table = cache.kept(
            partition.key, part, make, lambda found: sum(a.nbytes for a in found if a is not None)
        )
    return ScoredList(documents, shares, best, np.float32(weight), table)


def _having_all(wanted: TermSearch, lists: dict[str, ScoredList], count: int) -> U32:
    """Return the documents that have a term of each position."""
    groups: dict[int, set[str]] = {}
    for term in wanted.terms:
        if term.text in lists:
            groups.setdefault(term.position, set()).add(term.text)
    distinct = {frozenset(words) for words in groups.values()}
    found: U32 | None = None
    by_size = sorted(distinct, key=lambda words: sum(len(lists[w].documents) for w in words))
    for words in by_size:
        each = [lists[word].documents for word in words]
        documents = each[0] if len(each) == 1 else union(each)
        found = documents if found is None else _common(found, documents, count)
    return np.zeros(0, np.uint32) if found is None else found


def _common(some: U32, others: U32, count: int) -> U32:
    """Return the documents that are in both of two ascending lists, the first one shorter."""
    if len(some) * _FEW_PER_LIST <= len(others):
        rows = np.minimum(np.searchsorted(others, some), len(others) - 1)
        is_common: BoolArray = others[rows] == some
        return some[is_common]
    is_there = np.zeros(count, np.bool_)
    is_there[others] = True
    return some[is_there[some]]


def _places(
    partition: TextPartition, numbers: dict[str, int | None], lists: dict[str, ScoredList]
) -> dict[str, Places]:
    """Return where terms are."""
    return {
        word: Places(
            documents=lists[word].documents,
            ends=_ends(partition, number),
            positions=partition.positions(number),
        )
        for word, number in numbers.items()
        if number is not None and word in lists
    }


def _ends(partition: TextPartition, number: int) -> npt.NDArray[np.int64]:
    """Return where the positions of a term end, for each document that has it."""

    def make() -> npt.NDArray[np.int64]:
        return np.cumsum(partition.posting(number).frequencies, dtype=np.int64)

    if partition.key is None:
        return make()
    return cache.kept(partition.key, ("ends", number), make, lambda found: int(found.nbytes))
