"""Pairs and clusters of rows with nearly the same vectors."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import ColumnTypeError, IndexNotFoundError, InvalidRequestError
from lancelake.pylance import vector

CHANCE = np.random.default_rng(8)
MATRIX = CHANCE.integers(-1, 2, (300, 8)).astype(np.float32)
HASHES = CHANCE.integers(0, 2, (60, 8)).astype(np.uint8)


def table(path: Path, matrix: np.ndarray, kind: str, **options: Any) -> lance.LanceDataset:
    size = matrix.shape[1]
    lists = pa.FixedSizeListArray.from_arrays(pa.array(matrix.reshape(-1)), size)
    rows = pa.table({"id": range(len(matrix)), "v": lists})
    made = lance.write_dataset(rows, str(path / "t.lance"), max_rows_per_file=100)
    return made.create_index("v", kind, **options)


def pairs(found: pa.RecordBatchReader) -> set[tuple[int, int]]:
    rows = found.read_all()
    listed = list(zip(rows["row_id_a"].to_pylist(), rows["row_id_b"].to_pylist(), strict=True))
    ordered = {(min(pair), max(pair)) for pair in listed}
    assert len(ordered) == len(listed)
    return ordered


def address(row: int) -> int:
    return (row // 100 << 32) + row % 100


def test_pairs_of_live_rows_within_partitions(tmp_path: Path) -> None:
    made = table(tmp_path, MATRIX, "IVF_FLAT", num_partitions=1)
    made.delete("id % 5 = 2")
    live = [row for row in range(300) if row % 5 != 2]
    expected = {
        (address(a), address(b))
        for a, b in combinations(live, 2)
        if ((MATRIX[a] - MATRIX[b]) ** 2).sum() <= 2
    }
    assert expected
    assert pairs(vector.find_duplicate_pairs(made, "v", 2.0)) == expected


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("IVF_PQ", {"num_sub_vectors": 4}),
        ("IVF_SQ", {}),
        ("IVF_RQ", {"num_bits": 5}),
        ("IVF_PQ", {"num_sub_vectors": 4, "metric": "cosine"}),
    ],
)
def test_codes_of_equal_vectors_are_pairs(
    tmp_path: Path, kind: str, options: dict[str, Any]
) -> None:
    matrix = CHANCE.standard_normal((400, 8)).astype(np.float32)
    made = table(tmp_path, np.concatenate([matrix, matrix]), kind, num_partitions=3, **options)
    found = pairs(vector.find_duplicate_pairs(made, "v", 1e-9))
    assert found >= {(address(row), address(row + 400)) for row in range(400)}


def test_partitions_together_have_all_pairs(tmp_path: Path) -> None:
    made = table(tmp_path, MATRIX, "IVF_FLAT", num_partitions=4)
    (segment,) = made.describe_indices()[0].segments
    parts = [
        pairs(vector.find_duplicate_pairs_in_partition(made, "v", segment.uuid, number, 2.0))
        for number in range(4)
    ]
    assert set.union(*parts) == pairs(vector.find_duplicate_pairs(made, "v", 2.0))
    assert sum(map(len, parts)) == len(set.union(*parts))


def test_sizes_of_partitions_are_those_of_all_segments(tmp_path: Path) -> None:
    made = table(tmp_path, MATRIX, "IVF_FLAT", num_partitions=4)
    made.insert(made.to_table().slice(0, 50))
    made.optimize.optimize_indices(num_indices_to_merge=0)
    segments = [segment.uuid for segment in made.describe_indices()[0].segments]
    info = vector.get_ivf_partition_info(made, "v_idx")
    assert [each["partition_id"] for each in info] == [0, 1, 2, 3]
    assert sum(each["size"] for each in info) == 350
    sizes = [
        sum(each["size"] for each in vector.get_ivf_partition_info(made, "v_idx", index_segments=s))
        for s in ([segments[0]], [segments[1]])
    ]
    assert sorted(sizes) == [50, 300]


def test_clusters_connect_rows_through_others(tmp_path: Path) -> None:
    chain = np.array([[0] * 8, [1] + [0] * 7, [3] + [0] * 7, [255] * 8], dtype=np.uint8)
    options: dict[str, Any] = {"metric": "hamming", "num_partitions": 1}
    made = table(tmp_path, chain, "IVF_FLAT", **options)
    found = vector.hamming_clustering_for_ivf_partition(made, "v_idx", 0, 1).read_all()
    assert found.to_pylist() == [{"representative": 0, "duplicates": [1, 2]}]


def test_clusters_hold_each_row_once(tmp_path: Path) -> None:
    options: dict[str, Any] = {"metric": "hamming", "num_partitions": 1}
    made = table(tmp_path, HASHES, "IVF_FLAT", **options)
    bits = np.unpackbits(HASHES, axis=1).astype(int)
    near = (bits[:, np.newaxis] != bits).sum(axis=2) <= 1
    reached = np.linalg.matrix_power(near.astype(float), len(HASHES)) > 0
    expected = {tuple(np.flatnonzero(row).tolist()) for row in reached if row.sum() > 1}
    rows = vector.hamming_clustering_for_ivf_partition(made, "v_idx", 0, 1).read_all().to_pylist()
    assert {(row["representative"], *row["duplicates"]) for row in rows} == expected


def test_clusters_of_ranges_and_samples(tmp_path: Path) -> None:
    hashes = np.tile(np.array([[0] * 8, [255] * 8, [15] * 8], dtype=np.uint8), (50, 1))
    made = table(tmp_path, hashes, "IVF_FLAT", metric="hamming", num_partitions=1)
    whole = vector.hamming_clustering_for_sample(made, "v", None, 0).read_all()
    assert whole.column("representative").to_pylist() == [0, 1, 2]
    assert {len(row) for row in whole.column("duplicates").to_pylist()} == {49}
    part = vector.hamming_clustering_for_range(made, "v", 1, 2, 5, 0).read_all().to_pylist()
    assert [row["representative"] - (1 << 32) for row in part] == [2, 3]
    few = vector.hamming_clustering_for_sample(made, "v", 10, 0).read_all()
    assert sum(1 + len(row) for row in few.column("duplicates").to_pylist()) <= 10
    with pytest.raises(ColumnTypeError, match="fixed-size lists of uint8"):
        vector.hamming_clustering_for_range(made, "id", 0, 0, 5)
    with pytest.raises(InvalidRequestError, match="no fragment 9"):
        vector.hamming_clustering_for_range(made, "v", 9, 0, 5)


def test_refused_requests(tmp_path: Path) -> None:
    made = table(tmp_path, MATRIX, "IVF_FLAT", num_partitions=2)
    with pytest.raises(InvalidRequestError, match="not hamming"):
        vector.hamming_clustering_for_ivf_partition(made, "v_idx", 0, 1)
    with pytest.raises(IndexNotFoundError, match="'other'"):
        vector.get_ivf_partition_info(made, "other")
    with pytest.raises(InvalidRequestError, match="no segment"):
        vector.find_duplicate_pairs_in_partition(made, "v", "0" * 8, 0, 1.0)
    with pytest.raises(InvalidRequestError, match="must be a number"):
        vector.find_duplicate_pairs(made, "v", float("nan"))
    made.insert(made.to_table().slice(0, 1))
    with pytest.raises(InvalidRequestError, match="does not cover fragment 3"):
        vector.find_duplicate_pairs(made, "v", 1.0)
    made.drop_index("v_idx")
    with pytest.raises(InvalidRequestError, match="must have one vector index, but has none"):
        vector.find_duplicate_pairs(made, "v", 1.0)
