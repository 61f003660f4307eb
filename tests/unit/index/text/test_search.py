"""Searches of a partition find what a look at all documents finds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.index.kind import ROW_ID, VALUE
from lancelake.index.text.analyzer import Analyzer, QueryTerm
from lancelake.index.text.bm25 import (
    ScoredList,
    best_documents,
    best_having_all,
    having_all,
    scores_of,
)
from lancelake.index.text.build import MemoryPartition, memory_partition
from lancelake.index.text.parameters import TextParameters
from lancelake.index.text.search import TermSearch, corpus_of, search
from lancelake.index.text.terms import SimilarWords
from tests.support.text_tables import has_phrase, scores_by_definition

PLAIN = TextParameters.requested({"stem": False, "remove_stop_words": False})
documents = st.lists(st.lists(st.sampled_from("abcd"), max_size=8), min_size=1, max_size=20)
terms = st.lists(st.sampled_from("abcde"), min_size=1, max_size=4)


def partition(texts: list[list[str]], only: set[str] | None = None) -> MemoryPartition | None:
    columns = [pa.array([" ".join(t) for t in texts]), pa.array(range(len(texts)), pa.uint64())]
    batch = pa.RecordBatch.from_arrays(columns, [VALUE, ROW_ID])
    return memory_partition(Analyzer(PLAIN), [batch], with_position=True, only=only)


def found(
    texts: list[list[str]], wanted: TermSearch, only: set[str] | None = None
) -> dict[int, float]:
    content = partition(texts, only)
    if content is None:
        return {}
    hits = search(content, wanted, corpus_of([content], wanted.words))
    ids = content.documents.row_ids[hits.documents].tolist()
    return dict(zip(ids, hits.scores.tolist(), strict=True))


def query(words: list[str], **options: object) -> TermSearch:
    placed = tuple(QueryTerm(word, place) for place, word in enumerate(words))
    return TermSearch(terms=placed, **options)  # type: ignore[arg-type]


@given(texts=documents, words=terms)
def test_scores_are_those_of_the_definition(texts: list[list[str]], words: list[str]) -> None:
    expected = scores_by_definition(texts, words) if any(texts) else []
    matches = {row: score for row, score in enumerate(expected) if score > 0}
    assert found(texts, query(words)) == pytest.approx(matches, rel=1e-5)


@given(texts=documents, words=terms)
def test_all_terms_are_found_together(texts: list[list[str]], words: list[str]) -> None:
    rows = {row for row, text in enumerate(texts) if set(words) <= set(text)}
    assert found(texts, query(words, requires_all=True)).keys() == rows


@given(texts=documents, words=terms, slop=st.integers(0, 3))
def test_phrases_are_those_of_an_exact_matcher(
    texts: list[list[str]], words: list[str], slop: int
) -> None:
    rows = {row for row, text in enumerate(texts) if has_phrase(text, words, slop)}
    assert found(texts, query(words, slop=slop)).keys() == rows


@given(texts=documents, words=terms)
def test_scores_need_no_other_terms_than_those_of_the_query(
    texts: list[list[str]], words: list[str]
) -> None:
    assert found(texts, query(words), set(words)) == found(texts, query(words))


def scored(chance: np.random.Generator, count: int) -> ScoredList:
    size = int(chance.integers(1, count))
    chosen = np.sort(chance.choice(count, size, replace=False)).astype(np.uint32)
    return _list_of(chance, chosen, chance.random() * 5 + 0.01)


def _list_of(chance: np.random.Generator, chosen: np.ndarray, weight: float) -> ScoredList:
    shares = (chance.random(len(chosen)) ** 4 * 2.2).astype(np.float32)
    best = np.maximum.reduceat(shares, np.arange(0, len(chosen), 128))
    return ScoredList(chosen, shares, best, np.float32(weight))


@pytest.mark.parametrize("seed", range(40))
def test_the_best_documents_are_among_those_that_are_scored(seed: int) -> None:
    chance = np.random.default_rng(seed)
    count, most = 30_000, int(chance.integers(1, 50))
    lists = [scored(chance, count) for _ in range(int(chance.integers(1, 5)))]
    allowed = chance.random(count) < 0.5 if seed % 2 else None
    everything = scores_of(lists, np.arange(count, dtype=np.uint32))
    everything[~allowed if allowed is not None else slice(0, 0)] = 0
    rows, scores = best_documents(lists, count, allowed, most)
    assert np.sort(scores)[::-1][:most] == pytest.approx(np.sort(everything)[::-1][:most], rel=1e-5)
    assert np.all(everything[rows] > 0)


def common_and_rare(chance: np.random.Generator, count: int) -> list[ScoredList]:
    """Long lists of words that decide little, and short ones of words that decide much."""
    common = [with_table(scored(chance, count), count) for _ in range(3)]
    sizes = chance.integers(200, 2000, 12)
    rare = [np.sort(chance.choice(count, size, replace=False)).astype(np.uint32) for size in sizes]
    decisive = [_list_of(chance, each, float(chance.random() * 4 + 6)) for each in rare]
    return [*(replace(each, weight=np.float32(0.05)) for each in common), *decisive]


@pytest.mark.parametrize("seed", range(20))
def test_the_best_documents_for_many_terms_are_found(seed: int) -> None:
    chance = np.random.default_rng(seed)
    count, most = 30_000, int(chance.integers(1, 50))
    lists = common_and_rare(chance, count)
    if seed % 4 == 0:
        lists = [scored(chance, count) for _ in range(12)]
    allowed = chance.random(count) < 0.5 if seed % 2 else None
    everything = scores_of(lists, np.arange(count, dtype=np.uint32))
    everything[~allowed if allowed is not None else slice(0, 0)] = 0
    rows, scores = best_documents(lists, count, allowed, most)
    assert np.sort(scores)[::-1][:most] == pytest.approx(np.sort(everything)[::-1][:most], rel=1e-5)
    assert scores == pytest.approx(everything[rows], rel=1e-5)
    assert len(rows) <= most + 5


@pytest.mark.parametrize("is_filtered", [False, True])
def test_the_scores_of_few_documents_are_added_up(is_filtered: bool) -> None:
    chance = np.random.default_rng(3)
    count = 40_000
    lists = [scored(chance, 600) for _ in range(3)]
    allowed = chance.random(count) < 0.5 if is_filtered else None
    is_possible = np.ones(count, np.bool_) if allowed is None else allowed
    everything = np.flatnonzero(is_possible).astype(np.uint32)
    expected = scores_of(lists, everything)
    rows, scores = best_documents(lists, count, allowed, None)
    assert rows.tolist() == everything[expected > 0].tolist()
    assert scores == pytest.approx(expected[expected > 0], rel=1e-5)


def with_table(each: ScoredList, count: int) -> ScoredList:
    table = np.zeros(count, np.float32)
    table[each.documents] = each.shares
    return replace(each, table=table)


@pytest.mark.parametrize("seed", range(40))
def test_the_best_documents_that_have_all_terms_are_found(seed: int) -> None:
    chance = np.random.default_rng(seed)
    count, most = 60_000, int(chance.integers(1, 50))
    lists = [scored(chance, count) for _ in range(int(chance.integers(1, 4)))]
    if seed % 3:
        lists = [with_table(each, count) for each in lists]
    allowed = chance.random(count) < 0.5 if seed % 2 else None
    everything = np.arange(count, dtype=np.uint32)
    rows, scores = having_all(lists, everything if allowed is None else everything[allowed])
    expected = np.sort(scores)[::-1][:most]
    best = best_having_all(lists, allowed, most)
    if best is None:
        return
    assert np.sort(best[1])[::-1][:most] == pytest.approx(expected, rel=1e-5)
    assert set(best[0]) <= set(rows)


def test_pruning_applies_to_terms_that_are_all_required() -> None:
    chance = np.random.default_rng(0)
    lists = [scored(chance, 1_000_000) for _ in range(2)]
    best = best_having_all(lists, None, 10)
    assert best is not None
    assert 10 <= len(best[0]) < 10_000


def test_the_best_phrases_are_found_first() -> None:
    chance = np.random.default_rng(1)
    texts = [list(chance.choice(list("abc"), int(chance.integers(2, 9)))) for _ in range(20_000)]
    content = partition(texts)
    assert content is not None
    wanted = query(["a", "b"], slop=0)
    corpus = corpus_of([content], wanted.words)
    every = search(content, wanted, corpus)
    best = search(content, wanted, corpus, most=5)
    assert len(best.documents) < len(every.documents)
    assert np.sort(best.scores)[-5:].tolist() == np.sort(every.scores)[-5:].tolist()


def test_a_phrase_that_the_best_documents_lack_is_found_in_the_others() -> None:
    texts = [["b", "a"]] * 20_000 + [["a", "b", *"c" * 9]] * 7
    content = partition(texts)
    assert content is not None
    wanted = query(["a", "b"], slop=0)
    best = search(content, wanted, corpus_of([content], wanted.words), most=5)
    assert best.documents.tolist() == list(range(20_000, 20_007))


@pytest.mark.parametrize("options", [{}, {"requires_all": True}, {"slop": 0}])
def test_no_documents_are_found_when_none_are_wanted(options: dict[str, object]) -> None:
    content = partition([["a", "b"]] * 9000)
    assert content is not None
    wanted = query(["a", "b"], **options)
    corpus = corpus_of([content], wanted.words)
    assert not len(search(content, wanted, corpus, most=0).documents)


def test_few_documents_are_scored_when_few_are_wanted() -> None:
    chance = np.random.default_rng(0)
    lists = [scored(chance, 1_000_000) for _ in range(2)]
    rows, _ = best_documents(lists, 1_000_000, None, 10)
    assert len(rows) < 10_000


def distance(one: str, other: str) -> int:
    before = list(range(len(other) + 1))
    for i, left in enumerate(one, 1):
        row = [i]
        for j, right in enumerate(other, 1):
            row.append(min(before[j - 1] + (left != right), before[j] + 1, row[-1] + 1))
        before = row
    return before[-1]


@given(
    words=st.sets(st.text("abé", max_size=6), max_size=20),
    term=st.text("abé", min_size=1, max_size=6),
    most=st.integers(0, 2),
    prefix=st.integers(0, 2),
)
def test_similar_words_are_those_within_the_distance(
    words: set[str], term: str, most: int, prefix: int
) -> None:
    ordered = sorted(words, key=str.encode)
    expected = [
        word for word in ordered if distance(word, term) <= most and word.startswith(term[:prefix])
    ]
    found = SimilarWords(pa.array(ordered, pa.large_string())).find(term, most, prefix)
    assert found == expected
