"""Searches by an index as tasks of partitions find what one search finds."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lancelake
from lancelake.commit.snapshot import Snapshot
from lancelake.index.vector.top_rows import DistanceRange
from lancelake.scan.nearest import Nearest
from lancelake.scan.prepared import prepare
from lancelake.scan.search.batch import BatchSearch, batch_tasks
from lancelake.scan.search.partition_tasks import PartitionTask, split_by_partitions
from tests.support.read_tables import open_source

CHANCE = np.random.default_rng(2)
MATRIX = CHANCE.standard_normal((400, 8)).astype(np.float32)
QUERIES = CHANCE.standard_normal((15, 8)).astype(np.float32)
K = 5


def rows(values: np.ndarray) -> pa.Table:
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), 8)
    return pa.table({"id": range(len(values)), "v": lists})


def table(path: Path, kind: str = "IVF_FLAT", **options: Any) -> Snapshot:
    made = lancelake.write_dataset(rows(MATRIX[:300]), str(path / "t.lance"), max_rows_per_file=100)
    made = made.create_index("v", kind, num_partitions=6, **options)
    made.delete("id % 7 = 3")
    return open_source(made.uri)


def search_of(snapshot: Snapshot, **options: Any) -> BatchSearch:
    given = {"minimum_nprobes": 2, "maximum_nprobes": 2, **options}
    nearest = Nearest(column="v", queries=QUERIES, has_several=True, k=K, **given)
    return BatchSearch(snapshot=snapshot, nearest=nearest)


def found(search: BatchSearch, parallelism: int) -> list[tuple[int, float, int]]:
    tasks = [pickle.loads(pickle.dumps(task)) for task in batch_tasks(search, parallelism)]
    every = pa.concat_tables(task.run() for task in tasks).to_pylist()
    ranked = sorted((row["query_index"], row["_distance"], row["_rowaddr"]) for row in every)
    return [r for q in range(len(QUERIES)) for r in [row for row in ranked if row[0] == q][:K]]


def expected(search: BatchSearch) -> list[tuple[int, float, int]]:
    every = prepare(search.snapshot, search.request(search.nearest)).run().read_all().to_pylist()
    return [(row["query_index"], row["_distance"], row["_rowaddr"]) for row in every]


@pytest.mark.parametrize("parallelism", [1, 3, 20])
@pytest.mark.parametrize(
    ("kind", "options"),
    [("IVF_FLAT", {}), ("IVF_SQ", {"metric": "cosine"}), ("IVF_RQ", {"num_bits": 3})],
)
def test_tasks_find_what_one_search_finds(
    tmp_path: Path, kind: str, options: dict[str, Any], parallelism: int
) -> None:
    search = search_of(table(tmp_path, kind, **options))
    assert found(search, parallelism) == expected(search)


def test_each_partition_is_opened_by_one_task(tmp_path: Path) -> None:
    tasks = batch_tasks(search_of(table(tmp_path)), 3)
    opened = [
        number for task in tasks if isinstance(task, PartitionTask) for number, _ in task.pairs
    ]
    assert len(tasks) == 3
    assert sorted(opened) == sorted(set(opened))


def test_delta_segments_and_fragments_without_index_are_searched(tmp_path: Path) -> None:
    uri = table(tmp_path).location.uri
    made = lancelake.write_dataset(rows(MATRIX[300:350]), uri, mode="append")
    made.optimize.optimize_indices(num_indices_to_merge=0)
    lancelake.write_dataset(rows(MATRIX[350:]), uri, mode="append")
    search = search_of(open_source(uri))
    assert found(search, 2) == expected(search)


def test_without_a_number_of_partitions_enough_rows_are_found_at_first(tmp_path: Path) -> None:
    search = search_of(table(tmp_path), minimum_nprobes=2, maximum_nprobes=None)
    assert all(isinstance(task, PartitionTask) for task in batch_tasks(search, 2))
    assert found(search, 2) == expected(search)


@pytest.mark.parametrize(
    "options",
    [
        {"refine_factor": 2},
        {"minimum_nprobes": 1, "maximum_nprobes": None, "within": DistanceRange(0.0, 0.1)},
        {"minimum_nprobes": 1, "maximum_nprobes": None, "k": 200},
    ],
)
def test_searches_that_go_on_by_what_they_find_are_not_split(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    search = search_of(table(tmp_path))
    nearest = replace(search.nearest, **options)
    assert split_by_partitions(search.snapshot, nearest, 2, fast_search=False) is None
