"""Scores of documents by BM25, and the documents with the best ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lancelake.index.row_sets import BoolArray

U32 = npt.NDArray[np.uint32]
F32 = npt.NDArray[np.float32]

K1 = np.float32(1.2)
B = np.float32(0.75)
# Bits of a length that scores keep where lengths are rounded.
_LENGTH_BITS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Statistics of all documents that are searched, and of the terms of a query."""

    num_docs: int
    num_tokens: int
    frequencies: dict[str, int] = field(default_factory=dict)
    """In how many documents a term is."""

    @property
    def mean_length(self) -> float:
        """The mean number of terms of a document."""
        return float(np.float32(self.num_tokens) / np.float32(max(1, self.num_docs)))

    def weight(self, term: str) -> float:
        """Return the inverse document frequency of a term; 0 if no document has it."""
        frequency = self.frequencies.get(term, 0)
        return inverse_frequency(frequency, self.num_docs) if frequency else 0.0


def inverse_frequency(frequency: int, num_docs: int) -> float:
    """Return the weight of a term that some of all documents have."""
    return math.log((num_docs - frequency + 0.5) / (frequency + 0.5) + 1.0)


def rounded_lengths(lengths: U32) -> U32:
    """Round numbers of terms down to their four highest bits."""
    # The exponent of a float with 53 bits of precision is exact for 32-bit numbers.
    bits = np.frexp(lengths.astype(np.float64))[1]
    cut = np.maximum(bits - _LENGTH_BITS, 0).astype(np.uint32)
    rounded: U32 = (lengths >> cut) << cut
    return rounded


def document_norms(lengths: U32, mean_length: float) -> F32:
    """Return what the length of documents adds to the frequency of a term."""
    share = lengths.astype(np.float32) / np.float32(mean_length or 1.0)
    norms: F32 = K1 * (np.float32(1.0) - B + B * share)
    return norms


def document_weights(frequencies: U32, norms: F32) -> F32:
    """Return the share of the weight of a term that documents get."""
    counts = frequencies.astype(np.float32)
    weights: F32 = (K1 + np.float32(1.0)) * counts / (counts + norms)
    return weights


_BLOCK = 128
# Fewer documents are scored faster than the best ones are searched for.
_FEW = 1 << 13
# Blocks whose documents give a first bound of the scores that are good enough.
_FIRST_BLOCKS = 24
# The bound of so many terms is so far above all scores that it rules out nothing.
_MANY_TERMS = 8
# Documents are searched for in lists that are longer by so much.
_FEW_PER_LIST = 16
# Sums of the same numbers in another order may differ by so much.
_ROUNDING = np.float32(1e-5)


@dataclass(frozen=True, slots=True)
class ScoredList:
    """The documents of a term, ascending, with their shares of its weight."""

    documents: U32
    shares: F32
    best: F32
    """The best share of each block of documents."""
    weight: np.float32
    table: F32 | None = None
    """The share of each document of the partition, 0 without the term; only for a long list."""

    @property
    def most(self) -> float:
        """The best score of a document for this term."""
        return float(self.best.max()) * float(self.weight)

    def scores(self, documents: U32) -> F32:
        """Return the scores of documents for this term; 0 for those that do not have it."""
        if self.table is not None:
            return self.table[documents] * self.weight
        if not self.looks_up(documents):
            return _from_table([self], documents)
        rows = np.searchsorted(self.documents, documents)
        rows[rows == len(self.documents)] = 0
        is_there = self.documents[rows] == documents
        scores: F32 = np.where(is_there, self.shares[rows] * self.weight, np.float32(0.0))
        return scores

    def looks_up(self, documents: U32) -> bool:
        """Whether the scores of documents are looked up one by one."""
        is_long = len(documents) * _FEW_PER_LIST <= len(self.documents)
        return is_long or self.table is not None

    def at_least(self, score: float) -> U32:
        """Return the documents that get a score for this term, ascending."""
        share = np.float32(score) / self.weight
        blocks = np.flatnonzero(self.best >= share)
        if len(blocks) * 2 > len(self.best):
            is_good = self.shares >= share
            return self.documents[is_good]
        return self._of_blocks(blocks, share)

    def blocks_from(self, score: float) -> int:
        """Return how many blocks have a document that gets a score for this term."""
        return int((self.best >= np.float32(score) / self.weight).sum())

    def leading(self, blocks: int) -> U32:
        """Return the documents of the best blocks, ascending."""
        if len(self.best) <= blocks:
            return self.documents
        leading = np.sort(np.argpartition(-self.best, blocks)[:blocks])
        return self._of_blocks(leading, np.float32(0.0))

    def _of_blocks(self, blocks: npt.NDArray[np.int64], share: np.float32) -> U32:
        rows = (blocks[:, None] * _BLOCK + np.arange(_BLOCK)).reshape(-1)
        rows = rows[rows < len(self.documents)]
        good = rows[self.shares[rows] >= share]
        documents: U32 = self.documents[good]
        return documents


def best_documents(
    lists: Sequence[ScoredList], count: int, allowed: BoolArray | None, most: int | None
) -> tuple[U32, F32]:
    """Return allowed documents that have a term, ascending, with their scores.

    With `most`, at least that many of the best ones are among them, if there are as many.
    """
    total = sum(len(each.documents) for each in lists)
    if most is None or total <= max(_FEW, 4 * most):
        return _all(lists, count, allowed)
    if len(lists) > _MANY_TERMS:
        return _rarest_first(lists, count, allowed, most)
    bound = _bound(lists, allowed, most)
    candidates = None if bound is None else _candidates(lists, bound)
    if candidates is None or bound is None or len(candidates) * 4 > total:
        return _rarest_first(lists, count, allowed, most)
    candidates = _restrict(candidates, allowed)
    scores = scores_of(lists, candidates)
    is_good = scores >= bound
    return candidates[is_good], scores[is_good]


def _rarest_first(
    lists: Sequence[ScoredList], count: int, allowed: BoolArray | None, most: int
) -> tuple[U32, F32]:
    """Return the best documents; a long list that decides little is asked only for candidates."""
    rest = sorted(lists, key=lambda each: each.most)
    # What the lists up to each one can add to a score.
    added = [0.0, *itertools.accumulate(each.most for each in rest)]
    scores = np.zeros(count, np.float32)
    while rest:
        is_long = len(rest[-1].documents) * _FEW_PER_LIST > count
        if is_long and added[len(rest)] < _reached(scores, allowed, most):
            break
        each = rest.pop()
        scores[each.documents] += each.shares * each.weight
    bound = _reached(scores, allowed, most)
    is_candidate = scores >= np.float32(bound - added[len(rest)]) if bound else scores > 0
    candidates = _restrict(np.flatnonzero(is_candidate).astype(np.uint32), allowed)
    totals = scores[candidates]
    for each in rest:
        totals += each.scores(candidates)
    is_good = totals >= np.partition(totals, -most)[-most] if len(totals) > most else totals > 0
    return candidates[is_good], totals[is_good]


def _reached(scores: F32, allowed: BoolArray | None, most: int) -> float:
    """Return a score that at least `most` documents reach; 0 if it is not known quickly."""
    whole = len(scores) // _BLOCK
    if whole < most:
        return 0.0
    usable = scores if allowed is None else np.where(allowed, scores, np.float32(0.0))
    # The best documents of so many blocks are as many documents.
    best = usable[: whole * _BLOCK].reshape(whole, _BLOCK).max(axis=1)
    return float(np.partition(best, whole - most)[whole - most] * (1 - _ROUNDING))


def best_having_all(
    lists: Sequence[ScoredList], allowed: BoolArray | None, most: int
) -> tuple[U32, F32] | None:
    """Return the best allowed documents that have all terms, ascending, with their scores.

    These are all documents from some score on, at least `most`; None if no such score is known.
    """
    if min(len(each.documents) for each in lists) <= max(_FEW, 4 * most):
        return None
    blocks = max(_FIRST_BLOCKS, -(-8 * most // _BLOCK))
    first = union([each.leading(blocks) for each in lists])
    _, scores = having_all(lists, _restrict(first, allowed))
    if len(scores) < most:
        return None
    bound = np.partition(scores, len(scores) - most)[len(scores) - most] * (1 - _ROUNDING)
    total = sum(each.most for each in lists)
    least = [float(bound) - (total - each.most) for each in lists]
    # Each term rules out documents; the one that leaves the fewest blocks is asked.
    counts = [each.blocks_from(score) for each, score in zip(lists, least, strict=True)]
    rarest = counts.index(min(counts))
    candidates = lists[rarest].at_least(least[rarest])
    others = [each for number, each in enumerate(lists) if number != rarest]
    # The others rule out more: the candidates were chosen by the scores of this list.
    return _reaching([*others, lists[rarest]], _restrict(candidates, allowed), float(bound))


def _restrict(documents: U32, allowed: BoolArray | None) -> U32:
    return documents if allowed is None else documents[allowed[documents]]


def having_all(lists: Sequence[ScoredList], documents: U32) -> tuple[U32, F32]:
    """Return those of some ascending documents that have all terms, with their scores."""
    return _reaching(sorted(lists, key=lambda each: len(each.documents)), documents, 0.0)


def _reaching(lists: Sequence[ScoredList], documents: U32, bound: float) -> tuple[U32, F32]:
    """Return those of some documents that have all terms and reach a score, with their scores."""
    total = np.zeros(len(documents), np.float32)
    left = sum(each.most for each in lists)
    for each in lists:
        scores = each.scores(documents)
        left -= each.most
        sums = total + scores
        is_good = (scores > 0) & (sums >= np.float32(bound - left))
        documents, total = documents[is_good], sums[is_good]
    return documents, total


def union(lists: Sequence[U32]) -> U32:
    """Return the documents that are in any of some ascending lists, ascending."""
    if not lists:
        return np.zeros(0, np.uint32)
    if len(lists) == 1:
        return lists[0]
    # A stable sort merges ascending lists.
    whole = np.sort(np.concatenate(lists), kind="stable")
    is_new = np.ones(len(whole), np.bool_)
    np.not_equal(whole[1:], whole[:-1], out=is_new[1:])
    return whole[is_new]


def scores_of(lists: Sequence[ScoredList], documents: U32) -> F32:
    """Return the scores of documents, ascending, for all terms."""
    short = [each for each in lists if not each.looks_up(documents)]
    scores = _from_table(short, documents) if short else np.zeros(len(documents), np.float32)
    for each in lists:
        if each.looks_up(documents):
            scores += each.scores(documents)
    return scores


def _from_table(lists: Sequence[ScoredList], documents: U32) -> F32:
    """Look up scores in a table of all documents: faster than a search for each of many."""
    if not len(documents):
        return np.zeros(0, np.float32)
    last = max(int(documents[-1]), *(int(each.documents[-1]) for each in lists))
    table = np.zeros(last + 1, np.float32)
    for each in lists:
        table[each.documents] += each.shares * each.weight
    return table[documents]


def _bound(lists: Sequence[ScoredList], allowed: BoolArray | None, most: int) -> float | None:
    """Return a score that at least `most` documents reach; None if too few are looked at."""
    blocks = max(_FIRST_BLOCKS, -(-2 * most // _BLOCK))
    first = union([each.leading(blocks) for each in lists])
    if allowed is not None:
        first = first[allowed[first]]
    if len(first) < most:
        return None
    scores = scores_of(lists, first)
    return float(np.partition(scores, len(scores) - most)[len(scores) - most] * (1 - _ROUNDING))


def _candidates(lists: Sequence[ScoredList], bound: float) -> U32:
    """Return the documents that may reach a score."""
    ascending = sorted(lists, key=lambda each: each.most)
    total = sum(each.most for each in ascending)
    parts = []
    before = 0.0
    for each in ascending:
        before += each.most
        # A document that has only terms up to this one cannot reach the score.
        if before >= bound:
            parts.append(each.at_least(bound - (total - each.most)))
    return union(parts)


def _all(lists: Sequence[ScoredList], count: int, allowed: BoolArray | None) -> tuple[U32, F32]:
    total = sum(len(each.documents) for each in lists)
    if len(lists) == 1 or total * _FEW_PER_LIST <= count:
        documents, scores = _merge(lists)
        if allowed is not None:
            is_allowed = allowed[documents]
            documents, scores = documents[is_allowed], scores[is_allowed]
        return documents, scores
    scores = np.zeros(count, np.float32)
    for each in lists:
        scores[each.documents] += each.shares * each.weight
    is_hit = scores > 0 if allowed is None else (scores > 0) & allowed
    documents = np.flatnonzero(is_hit).astype(np.uint32)
    return documents, scores[documents]


def _merge(lists: Sequence[ScoredList]) -> tuple[U32, F32]:
    """Return the documents of lists with their scores; for few documents of many."""
    documents = np.concatenate([each.documents for each in lists])
    scores = np.concatenate([each.shares * each.weight for each in lists])
    if len(lists) == 1:
        return documents, scores
    order = np.argsort(documents, kind="stable")
    documents, scores = documents[order], scores[order]
    starts = np.flatnonzero(np.diff(documents, prepend=documents[:1] + np.uint32(1)))
    return documents[starts], np.add.reduceat(scores, starts)
