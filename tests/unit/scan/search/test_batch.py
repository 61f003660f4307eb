"""Many query vectors searched as tasks: together they find what one search finds."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lancelake
from lancelake.commit.snapshot import Snapshot
from lancelake.errors import UnsupportedError
from lancelake.scan.request import Nearest
from lancelake.scan.search.batch import BatchSearch, batch_tasks, merged
from lancelake.scan.search.prepared import prepare
from tests.support.read_tables import open_source
from tests.support.search_tables import article_vectors, write_articles

QUERIES = article_vectors()[:7] + np.float32(0.01)
Row = tuple[int, float, int]


def batch(articles: Snapshot, **options: object) -> BatchSearch:
    nearest = Nearest(column="vector", queries=QUERIES, has_several=True, k=4)
    return BatchSearch(snapshot=articles, nearest=nearest, **options)  # type: ignore[arg-type]


def best_of_tasks(search: BatchSearch, parallelism: int) -> list[Row]:
    tasks = [pickle.loads(pickle.dumps(task)) for task in batch_tasks(search, parallelism)]
    found = merged(search, pa.concat_tables(task.run() for task in tasks)).to_pylist()
    return [(row["query_index"], row["_distance"], row["_rowaddr"]) for row in found]


def expected(search: BatchSearch) -> list[Row]:
    request = search.request(search.nearest)
    found = prepare(search.snapshot, request).run().read_all().to_pylist()
    return [(row["query_index"], row["_distance"], row["_rowaddr"]) for row in found]


@pytest.fixture
def articles(tmp_path: Path) -> Snapshot:
    made = write_articles(tmp_path / "t.lance")
    made.delete("id = 3")
    return open_source(made.uri)


@pytest.mark.parametrize("parallelism", [1, 2, 8])
@pytest.mark.parametrize(
    "options", [{}, {"filter": "topic = 'south'"}, {"filter": "id < 30", "prefilter": False}]
)
def test_tasks_find_what_one_search_finds(
    articles: Snapshot, parallelism: int, options: dict[str, object]
) -> None:
    search = batch(articles, **options)
    assert best_of_tasks(search, parallelism) == expected(search)


def test_an_exact_search_is_split_by_fragments(articles: Snapshot) -> None:
    tasks = batch_tasks(batch(articles), 8)
    assert sorted(task.fragment_ids for task in tasks) == [(0,), (1,), (2,)]  # type: ignore[type-var]
    assert {len(task.search.nearest.queries) for task in tasks} == {7}


def test_multivectors_are_refused(tmp_path: Path) -> None:
    dtype = pa.list_(pa.list_(pa.float32(), 4))
    rows = pa.table({"vector": pa.array([[[0.0] * 4]], dtype)})
    made = lancelake.write_dataset(rows, str(tmp_path / "t.lance"))
    with pytest.raises(UnsupportedError, match="multivectors"):
        batch_tasks(batch(open_source(made.uri)), 2)
