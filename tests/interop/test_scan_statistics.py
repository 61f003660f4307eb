"""Statistics of index searches count what official releases count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lancelake.pylance as ours
from tests.support.official import RELEASES, OfficialPool

ROWS, MORE = 10_000, 3_000
DIMENSION = 8
QUERY = [0.1] * DIMENSION
WORDS = ["ant", "bee", "cat", "dog", "eel", "fox", "gnu"]
BUILD = """
lance.write_dataset(table, uri, max_rows_per_file=5000)
ds = lance.dataset(uri)
for column, kind in kinds.items():
    ds.create_scalar_index(column, kind)
for column, kind in {"v": "IVF_FLAT", "pq": "IVF_PQ"}.items():
    ds.create_index(column, kind, num_partitions=4, num_sub_vectors=4)
lance.write_dataset(more, uri, mode="append")
lance.dataset(uri).optimize.optimize_indices(num_indices_to_merge=0)
result = None
"""
# Releases cache what a session has read.
COUNT = """
ds = lance.dataset(uri)
result = []
for search in searches:
    counted = []
    ds.scanner(columns=["id"], scan_stats_callback=counted.append, **search).to_table()
    result.append([search, counted[0].parts_loaded])
"""
KINDS = {
    "id": "BTREE",
    "label": "BITMAP",
    "labels": "LABEL_LIST",
    "name": "NGRAM",
    "text": "INVERTED",
    "zone": "ZONEMAP",
    "bloom": "BLOOMFILTER",
}
FILTERS = [
    "id = 7",
    "id = 8",
    "id >= 5000 AND id < 9000",
    "id IN (5, 9600, 12000)",
    "id IS NULL",
    "label = 'ant'",
    "label IN ('ant', 'bee')",
    "label IS NULL",
    "label <> 'cat'",
    "array_has_any(labels, ['ant', 'bee'])",
    "array_has_all(labels, ['ant', 'cat'])",
    "contains(name, 'eel number 49')",
    "contains(name, 'number')",
    "contains(name, 'qqq')",
    "zone = 7",
    "bloom = 7",
    "id = 2500 AND label = 'dog'",
]
# Release 14 reads lists of terms that follow one another together; these are far apart.
TEXTS = ["ant", "word150", "ant word200 word400", "nothing", "bee nothing"]
# Release 4.0.2 counts none of these sets, and each search for a label that does not exist.
SINCE_14 = ["label > 'dog'", "label = 'none'"]
BEFORE_14 = ["cat dog", "eel fox gnu"]
NEAR: list[dict[str, Any]] = [
    {"column": "v", "q": QUERY, "k": 3, "nprobes": 1},
    {"column": "v", "q": QUERY, "k": 3, "nprobes": 2},
    {"column": "v", "q": QUERY, "k": 3, "nprobes": 4},
    {"column": "pq", "q": QUERY, "k": 3, "nprobes": 1},
    {"column": "pq", "q": QUERY, "k": 3, "nprobes": 4, "refine_factor": 3},
]


def rows(start: int, stop: int) -> pa.Table:
    numbers = range(start, stop)
    words = [WORDS[n % len(WORDS)] for n in numbers]
    values = np.random.default_rng(start).standard_normal((stop - start) * DIMENSION)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values, pa.float32()), DIMENSION)
    columns: dict[str, Any] = {
        "id": pa.array(numbers, pa.int64()),
        "label": [None if n % 11 == 0 else w for n, w in zip(numbers, words, strict=True)],
        "labels": [[w, WORDS[n % 3]] for n, w in zip(numbers, words, strict=True)],
        "name": [f"text {w} number {n % 500}" for n, w in zip(numbers, words, strict=True)],
        "text": [f"{w} word{n % 500}" for n, w in zip(numbers, words, strict=True)],
        "zone": pa.array(numbers, pa.int64()),
        "bloom": pa.array(numbers, pa.int64()),
        "v": vectors,
        "pq": vectors,
    }
    return pa.table(columns)


@pytest.mark.parametrize("release", RELEASES)
def test_parts_loaded_are_those_that_a_release_counts(
    officials: OfficialPool, tmp_table: str, release: str
) -> None:
    official = officials(release)
    official.run(tmp_table, BUILD, table=rows(0, ROWS), more=rows(ROWS, ROWS + MORE), kinds=KINDS)
    filters, texts = FILTERS, TEXTS
    if release == "4.0.2":
        texts = texts + BEFORE_14
    else:
        filters = filters + SINCE_14
    once: list[dict[str, Any]] = [
        *({"filter": text} for text in filters),
        *({"full_text_query": text} for text in texts),
        *({"nearest": near} for near in NEAR),
    ]
    # The second time all is in the cache.
    searches = [*once, *once]
    names: dict[str, Any] = {"lance": ours, "uri": tmp_table, "searches": searches}
    exec(COUNT, names)  # the same statements run in the official process
    assert names["result"] == official.run(tmp_table, COUNT, searches=searches)
    counts = [parts for _, parts in names["result"]]
    assert sum(counts[: len(once)]) > len(once)
    assert sum(counts[len(once) :]) == 0
