"""Tables of texts, queries of them that each implementation builds, and scores by definition."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

Query = list[Any]
"""A query as JSON: its kind, then its parts."""

BUILD = """
def built(query):
    kind, *parts = query
    if kind == "match":
        text, column, options = parts
        options = dict(options)
        if options.pop("all", False):
            options["operator"] = q.FullTextOperator.AND
        return q.MatchQuery(text, column, **options)
    if kind == "phrase":
        return q.PhraseQuery(parts[0], parts[1], slop=parts[2])
    if kind == "boost":
        return q.BoostQuery(built(parts[0]), built(parts[1]), negative_boost=parts[2])
    if kind == "multi":
        return q.MultiMatchQuery(parts[0], parts[1], boosts=parts[2])
    return q.BooleanQuery([(q.Occur(how), built(part)) for how, part in parts[0]])


def ask(table, asked):
    found = []
    for query, options in asked:
        rows = table.to_table(["id", "_score"], full_text_query=built(query), **options)
        found.append([rows["id"].to_pylist(), rows["_score"].to_pylist()])
    return found
"""
ASK_OFFICIAL = f"import lance.query as q\n{BUILD}\nresult = ask(lance.dataset(uri), asked)\n"
_WORDS = 400


def word(chance: random.Random) -> str:
    """Return a word; a few are common, most are rare."""
    return f"word{min(int(chance.paretovariate(0.8)), _WORDS) - 1}"


def texts(count: int, seed: int = 0) -> list[str | None]:
    """Return texts, of which some are empty, null, long or not in English."""
    chance = random.Random(seed)
    found: list[str | None] = [
        " ".join(word(chance) for _ in range(chance.randrange(20))) for _ in range(count)
    ]
    found[3], found[5] = None, "Die Straße, naïve café! " + "word1 " * 150
    return found


def table_of(count: int, seed: int = 0, first: int = 0) -> pa.Table:
    """Return a table of texts in two columns."""
    ids = pa.array(range(first, first + count), pa.int64())
    columns = {"id": ids, "t": texts(count, seed), "u": texts(count, seed + 1)}
    return pa.table(columns)


def common_words(chance: random.Random) -> list[str]:
    """Return words that follow each other somewhere."""
    return [f"word{chance.randrange(4)}" for _ in range(chance.randint(1, 3))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """Words of queries: single ones, and some that follow each other in a text."""

    word: Callable[[random.Random], str] = word
    phrase: Callable[[random.Random], list[str]] = common_words


SMALL = Vocabulary()


def leaf(chance: random.Random, *, fuzzy: bool = True, words_of: Vocabulary = SMALL) -> Query:
    """Return a match or phrase query.

    Phrases of three and more terms have no slop: official releases do not find all of them.
    """
    words = [words_of.word(chance) for _ in range(chance.randint(1, 4))]
    if chance.random() < 0.2:
        words.insert(chance.randrange(len(words)), chance.choice(["the", "absent"]))
    kind = chance.randrange(4 if fuzzy else 3)
    if kind == 0:
        return ["match", " ".join(words), "t", {"boost": chance.choice([1.0, 2.5])}]
    if kind == 1:
        return ["match", " ".join(words[:2]), "t", {"all": True}]
    if kind == 2:
        near = words_of.phrase(chance)
        slop = chance.choice([0, 1, 2]) if len(near) < 3 else 0
        return ["phrase", " ".join(near), "t", slop]
    options = {
        "fuzziness": chance.choice([1, 2]),
        "prefix_length": chance.choice([0, 4]),
        "max_expansions": chance.choice([50, 5]),
        "all": chance.random() < 0.3,
    }
    return ["match", " ".join(words[:2]), "t", options]


def query(
    chance: random.Random, *, fuzzy: bool = True, depth: int = 0, words_of: Vocabulary = SMALL
) -> Query:
    """Return a query of any kind."""
    if depth > 1 or chance.random() < 0.6:
        return leaf(chance, fuzzy=fuzzy, words_of=words_of)

    def part() -> Query:
        return query(chance, fuzzy=fuzzy, depth=depth + 1, words_of=words_of)

    kind = chance.randrange(3)
    if kind == 0:
        return ["boost", part(), part(), chance.choice([0.5, 0.2])]
    if kind == 1:
        return [
            "multi",
            f"{words_of.word(chance)} {words_of.word(chance)}",
            ["t", "u"],
            chance.choice([None, [1, 3]]),
        ]
    first = [chance.choice(["MUST", "SHOULD"]), part()]
    return ["boolean", [first, *([_occur(chance), part()] for _ in range(chance.randrange(3)))]]


def _occur(chance: random.Random) -> str:
    return chance.choice(["MUST", "SHOULD", "MUST_NOT"])


def asked(
    count: int, seed: int = 0, *, fuzzy: bool = True, words_of: Vocabulary = SMALL
) -> list[list[Any]]:
    """Return queries with options of the scan."""
    found = []
    for number in range(count):
        chance = random.Random(seed * 10_000 + number)
        options: dict[str, Any] = {}
        if chance.random() < 0.4:
            options["limit"] = chance.choice([1, 5, 20])
        if chance.random() < 0.3:
            options["filter"] = chance.choice(["id % 3 = 0", "id > 500", "id < 20"])
            # Which of the last rows of equal score a filter gets to see is open.
            options["prefilter"] = "limit" in options or chance.random() < 0.5
        found.append([query(chance, fuzzy=fuzzy, words_of=words_of), options])
    return found


def ensure_same(
    questions: Sequence[Sequence[Any]], mine: Sequence[Any], theirs: Sequence[Any]
) -> None:
    """Raise AssertionError if rows or scores differ; rows of equal score may change places."""
    for question, (ids, scores), (other_ids, other_scores) in zip(
        questions, mine, theirs, strict=True
    ):
        assert len(ids) == len(other_ids), question
        pairs = zip(scores, other_scores, strict=True)
        assert all(math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-5) for a, b in pairs), question
        if "limit" not in question[1]:
            assert set(ids) == set(other_ids), question


def scores_by_definition(documents: Sequence[Sequence[str]], terms: Sequence[str]) -> list[float]:
    """Return the BM25 score of each document, given as its terms, for the terms of a query."""
    counted = [Counter(document) for document in documents if document]
    mean = sum(map(len, documents)) / len(counted)
    scores = []
    for document in documents:
        counts, total = Counter(document), 0.0
        for term in terms:
            holders = sum(term in each for each in counted)
            weight = math.log((len(counted) - holders + 0.5) / (holders + 0.5) + 1)
            norm = 1.2 * (1 - 0.75 + 0.75 * len(document) / mean)
            total += weight * 2.2 * counts[term] / (counts[term] + norm)
        scores.append(total)
    return scores


def has_phrase(document: Sequence[str], terms: Sequence[str], slop: int) -> bool:
    """Whether terms follow each other in a document, each at most `slop` positions late."""
    places = {i for i, term in enumerate(document) if term == terms[0]}
    for wanted in terms[1:]:
        here = [i for i, term in enumerate(document) if term == wanted]
        places = {i for i in here if any(0 <= i - before - 1 <= slop for before in places)}
    return bool(places)
