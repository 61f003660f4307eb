"""Random queries of a corpus of short documents: rows and scores are those of release 14.

`make text-parity` asks 2,000 queries of a million documents; `make test` a sample.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lancelake.pylance as ours
import lancelake.pylance.query as q
from tests.support.official import Official, OfficialPool
from tests.support.text_corpus import TextCorpus
from tests.support.text_tables import BUILD, asked

exec(BUILD)  # the same functions run in official processes

DOCUMENTS = int(os.environ.get("LANCELAKE_TEXT_DOCUMENTS") or 20_000)
QUERIES = int(os.environ.get("LANCELAKE_TEXT_QUERIES") or 80)
AT_ONCE = 50
PHRASES = 30
# A busy machine indexes at least so many.
DOCUMENTS_PER_SECOND = 500
OPTIONS = {"with_position": True}
BUILDERS = ["ours", "4.0.2", "14.0.2"]
# Results of many rows come back as a file.
FOUND = """
import numpy as np

def found_by(table, asked):
    parts, counts = [], []
    for query, options in asked:
        rows = table.to_table(["_rowid", "_score"], full_text_query=built(query), **options)
        ids, scores = rows["_rowid"].to_numpy(), rows["_score"].to_numpy()
        order = np.lexsort((ids, -scores)) if "limit" in options else np.argsort(ids)
        parts.append((ids[order], scores[order]))
        counts.append(len(ids))
    return [np.concatenate(part) for part in zip(*parts)] + [np.array(counts)]
"""
ASK = f"""
import lance.query as q
{BUILD}
{FOUND}
np.savez(path, *found_by(lance.dataset(uri), asked))
result = None
"""
exec(FOUND)


@pytest.fixture(scope="module")
def corpus() -> TextCorpus:
    return TextCorpus.generated(DOCUMENTS)


@pytest.fixture(scope="module", params=BUILDERS)
def indexed(
    request: pytest.FixtureRequest,
    officials: OfficialPool,
    corpus: TextCorpus,
    tmp_path_factory: pytest.TempPathFactory,
) -> str:
    """Return a table whose texts were indexed by one of us."""
    uri = str(tmp_path_factory.mktemp("corpus") / f"{request.param}.lance")
    ours.write_dataset(corpus.table(), uri, max_rows_per_file=max(1000, DOCUMENTS // 5))
    for column in ("t", "u"):
        if request.param == "ours":
            ours.dataset(uri).create_scalar_index(column, "INVERTED", **OPTIONS)
        else:
            official = officials(request.param)
            official.timeout_s = max(official.timeout_s, DOCUMENTS / DOCUMENTS_PER_SECOND)
            official.create_scalar_index(uri, column, "INVERTED", **OPTIONS)
    return uri


def results(arrays: list[np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    ids, scores, counts = arrays
    bounds = np.cumsum(counts)[:-1]
    yield from zip(np.split(ids, bounds), np.split(scores, bounds), strict=True)


def test_rows_and_scores_are_those_of_release_14(
    official_14: Official, corpus: TextCorpus, indexed: str, tmp_path: Path
) -> None:
    questions = asked(QUERIES, 5, words_of=corpus.vocabulary)
    table = ours.dataset(indexed)
    path = tmp_path / "found.npz"
    different: list[Any] = []
    for start in range(0, len(questions), AT_ONCE):
        part = questions[start : start + AT_ONCE]
        theirs = asked_official(official_14, indexed, part, path)
        mine = list(results(globals()["found_by"](table, part)))
        different += [
            question
            for question, found, expected in zip(part, mine, theirs, strict=True)
            if not is_same(question, found, expected)
            and not is_best(question, found, official_14, indexed, path)
        ]
    assert different == []


def asked_official(
    official: Official, uri: str, questions: list[Any], path: Path
) -> list[tuple[np.ndarray, np.ndarray]]:
    official.run(uri, ASK, asked=questions, path=str(path))
    with np.load(path) as stored:
        return list(results([stored[name] for name in stored.files]))


def is_same(question: list[Any], found: Any, expected: Any) -> bool:
    """Whether rows and scores are equal; of the last rows of equal score any may be returned."""
    (ids, scores), (other_ids, other_scores) = found, expected
    if len(ids) != len(other_ids):
        return False
    if not np.allclose(scores, other_scores, rtol=1e-5, atol=1e-5):
        return False
    if "limit" not in question[1]:
        return bool((ids == other_ids).all())
    is_sure = scores > (scores[-1] + 1e-5 if len(scores) else 0)
    return set(ids[is_sure]) <= set(other_ids)


def is_best(question: list[Any], found: Any, official: Official, uri: str, path: Path) -> bool:
    """Whether rows are the best of all that release 14 finds without a limit.

    With one, it loses rows of boolean queries that it finds as a match query.
    """
    query, options = question
    if "limit" not in options:
        return False
    every = {key: value for key, value in options.items() if key != "limit"}
    ((ids, scores),) = asked_official(official, uri, [[query, every]], path)
    best = np.sort(scores)[::-1][: options["limit"]]
    known = dict(zip(ids.tolist(), scores.tolist(), strict=True))
    given = np.array([known.get(row, np.nan) for row in found[0].tolist()])
    return len(best) == len(given) and all(
        np.allclose(each, best, rtol=1e-5, atol=1e-5) for each in (found[1], given)
    )


def test_phrases_are_those_of_an_exact_matcher(corpus: TextCorpus, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    content = corpus.table()
    table = ours.write_dataset(content, uri, max_rows_per_file=max(1000, DOCUMENTS // 5))
    options = {**OPTIONS, "stem": False, "remove_stop_words": False}
    table.create_scalar_index("t", "INVERTED", **options)
    table = ours.dataset(uri)
    table.delete("id % 7 = 3")
    padded = pc.binary_join_element_wise("", content["t"], "", " ")
    is_live = pc.not_equal(pa.array(np.arange(DOCUMENTS) % 7), 3)
    for number in range(PHRASES):
        words = corpus.vocabulary.phrase(random.Random(number))
        has = pc.and_(pc.match_substring(padded, f" {' '.join(words)} "), is_live)
        found = table.to_table(["id"], full_text_query=q.PhraseQuery(" ".join(words), "t"))
        assert sorted(found["id"].to_pylist()) == np.flatnonzero(has.to_numpy(False)).tolist()
