"""A vector index is trained again when new rows are unlike those of its model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.index.vector.kind import LEAST_SAMPLE

CHANCE = np.random.default_rng(5)
DIMENSION = 16


def rows(center: float, scale: float, count: int, start: int = 0) -> pa.Table:
    values = (center + scale * CHANCE.standard_normal((count, DIMENSION))).astype(np.float32)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), DIMENSION)
    return pa.table({"id": range(start, start + count), "v": lists})


def indexed(path: Path, kind: str, **options: int) -> lance.LanceDataset:
    table = lance.write_dataset(rows(0, 1, 2000), str(path / "t.lance"))
    return table.create_index("v", kind, num_partitions=4, **options)


def appended(table: lance.LanceDataset, more: pa.Table) -> lance.LanceDataset:
    return lance.write_dataset(more, table.uri, mode="append")


@pytest.mark.parametrize(
    ("kind", "options"), [("IVF_PQ", {"num_sub_vectors": 8}), ("IVF_SQ", {}), ("IVF_HNSW_SQ", {})]
)
def test_rows_unlike_the_old_ones_train_the_model_again(
    tmp_path: Path, kind: str, options: dict[str, int]
) -> None:
    table = indexed(tmp_path, kind, **options)
    before = table.centroids(column="v")
    table = appended(table, rows(40, 0.01, 2000, 2000))
    table.optimize.optimize_indices()
    assert table.centroids(column="v") != before
    (description,) = table.describe_indices()
    assert (description.num_rows_indexed, len(description.segments)) == (4000, 1)
    query = {"column": "v", "q": np.full(DIMENSION, 40, np.float32), "k": 5}
    assert min(table.to_table(["id"], nearest=query)["id"].to_pylist()) >= 2000


def test_rows_like_the_old_ones_are_added_to_the_model(tmp_path: Path) -> None:
    table = indexed(tmp_path, "IVF_PQ", num_sub_vectors=8)
    before = table.centroids(column="v")
    table = appended(table, rows(0, 1, 1000, 2000))
    table.optimize.optimize_indices()
    assert table.centroids(column="v") == before


def test_a_new_segment_keeps_the_model(tmp_path: Path) -> None:
    table = indexed(tmp_path, "IVF_SQ")
    before = table.centroids(column="v")
    table = appended(table, rows(40, 0.01, 2000, 2000))
    table.optimize.optimize_indices(num_indices_to_merge=0)
    assert table.centroids(column="v") == before


def test_few_new_rows_do_not_count(tmp_path: Path) -> None:
    table = indexed(tmp_path, "IVF_SQ")
    before = table.centroids(column="v")
    table = appended(table, rows(40, 0.01, LEAST_SAMPLE - 1, 2000))
    table.optimize.optimize_indices()
    assert table.centroids(column="v") == before
