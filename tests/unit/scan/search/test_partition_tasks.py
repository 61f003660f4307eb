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
from lancelake.index.vector.vectors import DistanceRange
from lancelake.scan.request import Nearest
from lancelake.scan.search.batch import (
    BatchSearch,
    PartitionTask,
    batch_tasks,
    merged,
    merged_in_order,
    split_by_partitions,
)
from lancelake.scan.search.prepared import prepare
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


def search_of(
    snapshot: Snapshot, filter: str | None = None, *, prefilter: bool = True, **options: Any
) -> BatchSearch:
    given = {"minimum_nprobes": 2, "maximum_nprobes": 2, **options}
    nearest = Nearest(column="v", queries=QUERIES, has_several=True, k=K, **given)
    return BatchSearch(snapshot=snapshot, nearest=nearest, filter=filter, prefilter=prefilter)


def found(search: BatchSearch, parallelism: int) -> list[tuple[int, float, int]]:
    tasks = [pickle.loads(pickle.dumps(task)) for task in batch_tasks(search, parallelism)]
    every = merged(search, pa.concat_tables(task.run() for task in tasks)).to_pylist()
    return [(row["query_index"], row["_distance"], row["_rowaddr"]) for row in every]


def expected(search: BatchSearch) -> list[tuple[int, Any, int]]:
    every = prepare(search.snapshot, search.request(search.nearest)).run().read_all().to_pylist()
    # The last digits of a matrix product depend on how many vectors are multiplied at once.
    return [
        (row["query_index"], pytest.approx(row["_distance"], rel=1e-5), row["_rowaddr"])
        for row in every
    ]


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
    segments = [
        pairs for task in tasks if isinstance(task, PartitionTask) for pairs in task.segments
    ]
    opened = [number for pairs in segments for number, _ in pairs]
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


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a table of several segments, in which more rows match a filter than are scanned."""
    values = np.random.default_rng(3).integers(-2, 3, (6000, 8)).astype(np.float32)
    uri = str(tmp_path_factory.mktemp("large") / "t.lance")
    options: dict[str, Any] = {"max_rows_per_file": 1500, "enable_stable_row_ids": True}
    made = lancelake.write_dataset(rows(values[:5000]), uri, **options)
    made = made.create_index("v", "IVF_PQ", num_partitions=6, num_sub_vectors=2)
    # Ids of the table are then in another order than addresses.
    made.update({"id": "id + 10000"}, "id < 700")
    made = lancelake.write_dataset(rows(values[5000:5600]), uri, mode="append")
    made.optimize.optimize_indices(num_indices_to_merge=0)
    return lancelake.write_dataset(rows(values[5600:]), uri, mode="append").uri


FEW, MANY = "id % 50 = 1", "id % 4 > 0"


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"refine_factor": 3},
        {"refine_factor": 3, "within": DistanceRange(1.0, 5.0)},
        {"filter": FEW},
        {"filter": MANY},
        {"filter": MANY, "refine_factor": 2},
        {"filter": FEW, "prefilter": False},
        {"filter": "_distance < 4 and id % 2 = 0", "prefilter": False, "refine_factor": 2},
        {"refine_factor": 2, "minimum_nprobes": 2, "maximum_nprobes": None},
    ],
)
def test_filters_and_refinement_find_what_one_search_finds(
    large: str, options: dict[str, Any], parallelism: int
) -> None:
    search = search_of(open_source(large), **options)
    assert all(task.is_partial for task in batch_tasks(search, parallelism))
    assert found(search, parallelism) == expected(search)


def test_results_are_merged_where_rows_of_a_query_are_in_several_batches(large: str) -> None:
    search = search_of(open_source(large), refine_factor=2)
    every = pa.concat_tables(task.run() for task in batch_tasks(search, 3)).sort_by("query_index")
    batches = every.to_batches(max_chunksize=7)
    parts = list(merged_in_order(search, batches, rows_at_once=40))
    assert len(parts) > 1
    assert pa.Table.from_batches(parts) == merged(search, every)


@pytest.mark.parametrize(
    "options",
    [
        {"minimum_nprobes": 1, "maximum_nprobes": None, "within": DistanceRange(0.0, 0.1)},
        {"minimum_nprobes": 1, "maximum_nprobes": None, "filter": "id > 3"},
        {"minimum_nprobes": 1, "maximum_nprobes": None, "refine_factor": 60},
    ],
)
def test_searches_that_depend_on_their_results_are_not_split(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    search = search_of(table(tmp_path), **options)
    assert split_by_partitions(search, 2) is None
    assert not any(task.is_partial for task in batch_tasks(search, 2))


def test_many_queries_of_a_small_index_are_split_without_a_merge(tmp_path: Path) -> None:
    search = search_of(table(tmp_path))
    queries = np.tile(QUERIES, (80, 1))
    many = replace(search, nearest=replace(search.nearest, queries=queries))
    tasks = batch_tasks(many, 2)
    assert [task.is_partial for task in tasks] == [False, False]
    assert found(many, 2) == expected(many)


def test_rows_outside_the_index_are_read_by_one_task(tmp_path: Path) -> None:
    snapshot = table(tmp_path)
    lancelake.write_dataset(rows(MATRIX[300:]), snapshot.location.uri, mode="append")
    search = search_of(open_source(snapshot.location.uri))
    queries = np.tile(QUERIES, (80, 1))
    many = replace(search, nearest=replace(search.nearest, queries=queries))
    assert all(task.is_partial for task in batch_tasks(many, 2))
