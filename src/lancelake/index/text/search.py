"""Search of a partition: the documents that have the terms of a query, and their scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce

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
# So many of the best documents with all terms are searched for each phrase before all are.
_TRIED_PER_PHRASE = 8, 128
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
    if most == 0:
        return NO_HITS
    found = {word: partition.terms.number(word) for word in wanted.words}
    numbers = {
        word: number
        for word, number in found.items()
        if number is not None and partition.frequency(number)
    }
    needs_all = wanted.requires_all or wanted.slop is not None
    if needs_all and not _has_all_positions(wanted, numbers):
        return NO_HITS
    # N-grams share a position, where a repeated one counts once.
    times = Counter(term.text for term in set(wanted.terms))
    lists = {
        word: _scored(partition, number, corpus, corpus.weight(word) * times[word])
        for word, number in numbers.items()
    }
    if not lists:
        return NO_HITS
    if needs_all:
        return _AllTerms(partition, wanted, numbers, lists, allowed).hits(most)
    return Hits(*best_documents(list(lists.values()), len(partition.documents), allowed, most))


def _has_all_positions(wanted: TermSearch, numbers: dict[str, int]) -> bool:
    """Whether there is a term for each position."""
    known = {term.position for term in wanted.terms if term.text in numbers}
    return bool(known) and known == {term.position for term in wanted.terms}


def _scored(partition: TextPartition, number: int, corpus: Corpus, weight: float) -> ScoredList:
    """Return the documents of a term with their shares of its weight."""

    def make() -> tuple[U32, F32, F32, F32 | None]:
        posting = partition.posting(number)
        lengths = partition.documents.scored_lengths[posting.documents]
        norms = document_norms(lengths, corpus.mean_length)
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


@dataclass(frozen=True, slots=True)
class _AllTerms:
    """A search for documents that have a term of each position, or a phrase."""

    partition: TextPartition
    wanted: TermSearch
    numbers: dict[str, int]
    lists: dict[str, ScoredList]
    allowed: BoolArray | None

    def hits(self, most: int | None) -> Hits:
        """Return the documents; only the best ones if a number is given."""
        lists = list(self.lists.values())
        positions = {term.position for term in self.wanted.terms}
        if len(set(self.wanted.terms)) > len(positions):
            documents = self._allowed(self._of_each_position())
            return self._matching(documents, scores_of(lists, documents))
        if most is not None:
            for factor in (1,) if self.wanted.slop is None else _TRIED_PER_PHRASE:
                best = best_having_all(lists, self.allowed, most * factor)
                found = NO_HITS if best is None else self._matching(*best)
                if len(found.documents) >= most:
                    return found
        shortest = min((each.documents for each in lists), key=len)
        return self._matching(*having_all(lists, self._allowed(shortest)))

    def _allowed(self, documents: U32) -> U32:
        return documents if self.allowed is None else documents[self.allowed[documents]]

    def _of_each_position(self) -> U32:
        """Return the documents that have a term of each position."""
        groups: dict[int, set[str]] = {}
        for term in self.wanted.terms:
            if term.text in self.lists:
                groups.setdefault(term.position, set()).add(term.text)
        each_group = (
            union([self.lists[word].documents for word in words])
            for words in {frozenset(words) for words in groups.values()}
        )
        first, *others = sorted(each_group, key=len)
        return reduce(partial(_common, count=len(self.partition.documents)), others, first)

    def _matching(self, documents: U32, scores: F32) -> Hits:
        """Return those of the documents with all terms that have the phrase, if there is one."""
        hits = Hits(documents, scores)
        if self.wanted.slop is None or not len(documents):
            return hits
        places = {word: self._places(word) for word in self.lists}
        steps: dict[int, list[Places]] = {}
        for term in dict.fromkeys(self.wanted.terms):
            if term.text in places:
                steps.setdefault(term.position, []).append(places[term.text])
        return hits.only(has_phrase(documents, sorted(steps.items()), self.wanted.slop))

    def _places(self, word: str) -> Places:
        number = self.numbers[word]
        return Places(
            documents=self.lists[word].documents,
            ends=_ends(self.partition, number),
            positions=self.partition.positions(number),
        )


def _common(some: U32, others: U32, count: int) -> U32:
    """Return the documents that are in both of two ascending lists, the first one shorter."""
    if len(some) * _FEW_PER_LIST <= len(others):
        rows = np.minimum(np.searchsorted(others, some), len(others) - 1)
        is_common: BoolArray = others[rows] == some
        return some[is_common]
    is_there = np.zeros(count, np.bool_)
    is_there[others] = True
    return some[is_there[some]]


def _ends(partition: TextPartition, number: int) -> npt.NDArray[np.int64]:
    """Return where the positions of a term end, for each document that has it."""

    def make() -> npt.NDArray[np.int64]:
        return np.cumsum(partition.posting(number).frequencies, dtype=np.int64)

    if partition.key is None:
        return make()
    return cache.kept(partition.key, ("ends", number), make, lambda found: int(found.nbytes))
