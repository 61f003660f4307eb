"""Search of a partition: queries to documents and scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np
import numpy.typing as npt

from lancelake.index import cache
from lancelake.index.row_sets import BoolArray
from lancelake.index.text import bm25
from lancelake.index.text.analyzer import Analyzer, QueryTerm, query_words
from lancelake.index.text.build import MemoryPartition
from lancelake.index.text.packing import runs
from lancelake.index.text.partition import StoredPartition
from lancelake.index.text.terms import automatic_distance
from lancelake.index.text.text_query import Match, Phrase

U32 = npt.NDArray[np.uint32]
I64 = npt.NDArray[np.int64]

TextPartition = StoredPartition | MemoryPartition
"""Documents with the posting lists of their terms."""

_SHIFT = 32
# Documents are searched for in lists that are longer by so much.
_FEW_PER_LIST = 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Places:
    """Where a term is: its documents, ascending, and its positions in one after the other."""

    documents: U32
    ends: I64
    """End of the positions of each document."""
    positions: U32


def has_phrase(
    documents: U32, steps: Sequence[tuple[int, Sequence[Places]]], slop: int
) -> BoolArray:
    """Return which documents have terms in order.

    `steps` are the positions of the phrase, ascending, with the places of the terms of each, of
    which one is enough. A term may come up to `slop` positions later than the one before it
    demands.
    """
    reached: I64 | None = None
    before = 0
    for position, several in steps:
        here = _of_any(documents, several)
        reached = here if reached is None else _next(reached, here, position - before, slop)
        before = position
    has_it = np.zeros(len(documents), np.bool_)
    if reached is not None:
        has_it[reached >> _SHIFT] = True
    return has_it


def _of_any(documents: U32, several: Sequence[Places]) -> I64:
    """Return the positions of any of some terms, ascending."""
    first, *others = (_places(documents, places) for places in several)
    return np.unique(np.concatenate([first, *others])) if others else first


def _places(documents: U32, places: Places) -> I64:
    """Return the positions of a term in some documents, with the place of the document above."""
    if len(documents) * _FEW_PER_LIST <= len(places.documents):
        rows = np.searchsorted(places.documents, documents)
        rows[rows == len(places.documents)] = 0
        at = np.flatnonzero(places.documents[rows] == documents)
        rows = rows[at]
    else:
        number = np.full(int(max(places.documents[-1], documents[-1])) + 1, -1, np.int64)
        number[documents] = np.arange(len(documents))
        at = number[places.documents]
        rows = np.flatnonzero(at >= 0)
        at = at[rows]
    starts = np.where(rows > 0, places.ends[rows - 1], 0)
    counts = places.ends[rows] - starts
    values = places.positions[runs(starts, counts)].astype(np.int64)
    place: I64 = np.repeat(at.astype(np.int64), counts) << _SHIFT
    places_found: I64 = place | values
    return places_found


def _next(reached: I64, here: I64, step: int, slop: int) -> I64:
    """Return the places of a term that follow a place of the term before it."""
    document = here >> _SHIFT << _SHIFT
    latest = here - step
    if not slop:
        rows = np.minimum(np.searchsorted(reached, latest), max(0, len(reached) - 1))
        return here[reached[rows] == latest] if len(reached) else here[:0]
    earliest = np.maximum(latest - slop, document)
    is_after = np.searchsorted(reached, latest, "right") > np.searchsorted(
        reached, earliest, "left"
    )
    following: I64 = here[is_after & (latest >= document)]
    return following


F32 = npt.NDArray[np.float32]

_BLOCK = 128
# So many of the best documents with all terms are searched for each phrase before all are.
_TRIED_PER_PHRASE = 8, 128


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

    def only(self, is_chosen: BoolArray) -> Hits:
        """Return some of the documents."""
        return Hits(self.documents[is_chosen], self.scores[is_chosen])


NO_HITS = Hits(np.zeros(0, np.uint32), np.zeros(0, np.float32))


def corpus_of(partitions: Sequence[TextPartition], words: Sequence[str]) -> bm25.Corpus:
    """Return the statistics of partitions and of some terms there."""
    return bm25.Corpus(
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
    corpus: bm25.Corpus,
    *,
    allowed: BoolArray | None = None,
    most: int | None = None,
) -> Hits:
    """Return the allowed documents that match; only the best ones if a number is given."""
    if most == 0:
        return NO_HITS
    numbers_of = {word: partition.terms.number(word) for word in wanted.words}
    numbers = {
        word: number
        for word, number in numbers_of.items()
        if number is not None and partition.frequency(number)
    }
    needs_all = wanted.requires_all or wanted.slop is not None
    if needs_all and not _has_all_positions(wanted, numbers):
        return NO_HITS
    # N-grams share a position, where a repeated one counts once.
    times = Counter(term.text for term in set(wanted.terms))
    lists = {
        word: _score(partition, number, corpus, corpus.weight(word) * times[word])
        for word, number in numbers.items()
    }
    if not lists:
        return NO_HITS
    if needs_all:
        return _AllTerms(partition, wanted, numbers, lists, allowed).hits(most)
    return Hits(*bm25.best_documents(list(lists.values()), len(partition.documents), allowed, most))


def _has_all_positions(wanted: TermSearch, numbers: dict[str, int]) -> bool:
    """Whether there is a term for each position."""
    positions = {term.position for term in wanted.terms if term.text in numbers}
    return bool(positions) and positions == {term.position for term in wanted.terms}


def _score(
    partition: TextPartition, number: int, corpus: bm25.Corpus, weight: float
) -> bm25.ScoredList:
    """Return the documents of a term with their shares of its weight."""

    def make() -> tuple[U32, F32, F32, F32 | None]:
        posting = partition.posting(number)
        lengths = partition.documents.scored_lengths[posting.documents]
        norms = bm25.document_norms(lengths, corpus.mean_length)
        shares = bm25.document_weights(posting.frequencies, norms)
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
            partition.key, part, make, lambda arrays: sum(a.nbytes for a in arrays if a is not None)
        )
    return bm25.ScoredList(documents, shares, best, np.float32(weight), table)


@dataclass(frozen=True, slots=True)
class _AllTerms:
    """A search for documents that have a term of each position, or a phrase."""

    partition: TextPartition
    wanted: TermSearch
    numbers: dict[str, int]
    lists: dict[str, bm25.ScoredList]
    allowed: BoolArray | None

    def hits(self, most: int | None) -> Hits:
        """Return the documents; only the best ones if a number is given."""
        lists = list(self.lists.values())
        positions = {term.position for term in self.wanted.terms}
        if len(set(self.wanted.terms)) > len(positions):
            documents = self._restrict(self._of_each_position())
            return self._matching(documents, bm25.scores_of(lists, documents))
        if most is not None:
            for factor in (1,) if self.wanted.slop is None else _TRIED_PER_PHRASE:
                best = bm25.best_having_all(lists, self.allowed, most * factor)
                hits = NO_HITS if best is None else self._matching(*best)
                if len(hits.documents) >= most:
                    return hits
        shortest = min((each.documents for each in lists), key=len)
        return self._matching(*bm25.having_all(lists, self._restrict(shortest)))

    def _restrict(self, documents: U32) -> U32:
        return documents if self.allowed is None else documents[self.allowed[documents]]

    def _of_each_position(self) -> U32:
        """Return the documents that have a term of each position."""
        groups: dict[int, set[str]] = {}
        for term in self.wanted.terms:
            if term.text in self.lists:
                groups.setdefault(term.position, set()).add(term.text)
        each_group = (
            bm25.union([self.lists[word].documents for word in words])
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
    return cache.kept(partition.key, ("ends", number), make, lambda value: int(value.nbytes))


def term_search(
    query: Match | Phrase,
    analyzer: Analyzer,
    partitions: Sequence[TextPartition],
    *,
    keeps_exact: bool = False,
) -> TermSearch | None:
    """Return what to search in partitions; None if nothing can match there.

    The limit of similar terms can leave out the terms of the query; `keeps_exact` adds them.
    """
    terms = tuple(analyzer.query_terms(query.text))
    if isinstance(query, Match) and query.fuzziness:
        # As in official releases, the words of the query themselves are compared with terms.
        exact, terms = terms, tuple(query_words(query.text))
    else:
        exact = terms
    if not terms:
        return None
    if isinstance(query, Phrase):
        return TermSearch(terms=terms, requires_all=True, slop=query.slop)
    if query.fuzziness != 0:
        expanded = _expand(query, terms, partitions)
        if keeps_exact:
            expanded = tuple(dict.fromkeys([*exact, *expanded]))
        lost = {term.position for term in terms} - {term.position for term in expanded}
        if not expanded or (query.requires_all and lost):
            return None
        terms = expanded
    return TermSearch(terms=terms, requires_all=query.requires_all)


def _expand(
    query: Match, terms: Sequence[QueryTerm], partitions: Sequence[TextPartition]
) -> tuple[QueryTerm, ...]:
    """Return the similar terms of each position, in order, up to a number for the whole query."""
    expanded: dict[QueryTerm, None] = {}
    by_position: dict[int, dict[str, None]] = {}
    for term in terms:
        by_position.setdefault(term.position, {})[term.text] = None
    for position, sources in sorted(by_position.items()):
        near = {
            word
            for source in sources
            for partition in partitions
            for word in partition.terms.similar.find(
                source, _distance(query, source), query.prefix_length
            )
        }
        room = query.max_expansions - len(expanded)
        words = sorted(near, key=str.encode)[: max(0, room)]
        expanded |= dict.fromkeys(QueryTerm(word, position) for word in words)
    return tuple(expanded)


def _distance(query: Match, term: str) -> int:
    return automatic_distance(term) if query.fuzziness is None else query.fuzziness
