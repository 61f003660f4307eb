"""Partitions and PQ codes that PyTorch computes are those of the nearest centers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError
from lancelake.pylance.file import LanceFileReader
from lancelake.pylance.indices import IndicesBuilder
from lancelake.pylance.torch.assignment import fixed_clusters
from lancelake.pylance.vector import (
    compute_partitions,
    compute_pq_codes,
    one_pass_assign_ivf_pq_on_accelerator,
    train_pq_codebook_on_accelerator,
)

ROWS, DIMENSION, PARTS = 600, 8, 2
MATRIX = np.random.default_rng(4).standard_normal((ROWS, DIMENSION)).astype(np.float32)
CENTERS = MATRIX[:3]


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.fixture
def table(tmp_table: str) -> lance.LanceDataset:
    values: list[Any] = MATRIX.tolist()
    values[10], values[11] = None, [float("nan")] * DIMENSION
    vectors = pa.array(values, pa.list_(pa.float32(), DIMENSION))
    rows = pa.table({"id": range(ROWS), "v": vectors})
    return lance.write_dataset(rows, tmp_table, max_rows_per_file=250)


def nearest(vectors: np.ndarray, centers: np.ndarray) -> np.ndarray:
    return ((vectors[:, None] - centers[None]) ** 2).sum(axis=2).argmin(axis=1)


def known(table: lance.LanceDataset) -> tuple[list[int], np.ndarray]:
    """Return the ids and numbers of the rows that have a partition."""
    rows = table.to_table(["id"], with_row_id=True)
    ids = [row for row in range(ROWS) if row not in (10, 11)]
    return rows["_rowid"].take(ids).to_pylist(), np.array(ids)


def test_vectors_are_assigned_to_the_nearest_center(
    torch: Any, table: lance.LanceDataset, tmp_path: Path
) -> None:
    clusters = fixed_clusters(CENTERS, "l2", "cpu")
    target = str(tmp_path / "assigned.lance")
    assert compute_partitions(table, "v", clusters, dst_dataset_uri=target) == target
    found = lance.dataset(target).to_table()
    ids, places = known(table)
    assert found["row_id"].to_pylist() == ids
    assert found["partition"].to_pylist() == nearest(MATRIX[places], CENTERS).tolist()


def test_codes_are_those_of_the_differences(
    torch: Any, table: lance.LanceDataset, tmp_path: Path
) -> None:
    clusters = fixed_clusters(CENTERS, "l2", "cpu")
    target = str(tmp_path / "parts.lance")
    compute_partitions(table, "v", clusters, dst_dataset_uri=target, num_sub_vectors=PARTS)
    book, models = train_pq_codebook_on_accelerator(target, "l2", "cpu", PARTS)
    assert book.shape == (PARTS, 256, DIMENSION // PARTS)
    uri, files = compute_pq_codes(lance.dataset(target), models)
    found = lance.dataset(uri).to_table()
    _, places = known(table)
    numbers = nearest(MATRIX[places], CENTERS)
    parts = (MATRIX[places] - CENTERS[numbers]).reshape(len(places), PARTS, -1)
    expected = np.stack([nearest(parts[:, i], book[i]) for i in range(PARTS)], axis=1)
    codes = np.array(found["__pq_code"].to_pylist())
    assert (codes == expected).mean() > 0.999
    assert found["__ivf_part_id"].to_pylist() == numbers.tolist()
    assert len(files) == 1
    again, _ = one_pass_assign_ivf_pq_on_accelerator(table, "v", "l2", "cpu", clusters, models)
    assert lance.dataset(again).to_table() == found


def test_a_sample_is_numbered_from_zero(torch: Any, table: lance.LanceDataset) -> None:
    clusters = fixed_clusters(CENTERS, "cosine", "cpu")
    uri = compute_partitions(table, "v", clusters, sample_size=ROWS)
    assert lance.dataset(uri).to_table()["row_id"].to_pylist() == list(range(ROWS - 2))


def test_assignments_are_a_step_of_a_build(
    torch: Any, table: lance.LanceDataset, tmp_path: Path
) -> None:
    builder = IndicesBuilder(table, "v")
    ivf = builder.train_ivf(3, sample_rate=16)
    pq = builder.train_pq(ivf, PARTS, sample_rate=2)
    assigned = builder.assign_ivf_partitions(ivf, "cpu", str(tmp_path / "assigned.lance"))
    builder.transform_vectors(ivf, pq, str(tmp_path / "a.lance"), partition_ds_uri=assigned)
    builder.transform_vectors(ivf, pq, str(tmp_path / "b.lance"))
    first, second = (LanceFileReader(str(tmp_path / f"{name}.lance")).read_all() for name in "ab")
    assert first.to_table() == second.to_table()


def test_what_cannot_be_assigned_is_refused(torch: Any, table: lance.LanceDataset) -> None:
    clusters = fixed_clusters(CENTERS, "l2", "cpu")
    with pytest.raises(InvalidRequestError, match="must be divisible"):
        compute_partitions(table, "v", clusters, num_sub_vectors=3)
    with pytest.raises(InvalidRequestError, match="has no vectors"):
        compute_partitions(table, "id", clusters)
