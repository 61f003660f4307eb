"""Duplicates that a vector index shows are those that release 14 finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.pylance import vector
from tests.support.official import Official

PAIRS = """
ds = lance.dataset(uri)
ds = ds.create_index("v", kind, num_partitions=3, **options)
found = ds._ds.find_duplicate_pairs("v", limit, memory_limit=None, max_concurrency=None)
result = found.read_all().to_pydict()
"""
CLUSTERS = """
ds = lance.dataset(uri)
ds = ds.create_index("v", "IVF_FLAT", num_partitions=2, metric="hamming")
found = ds._ds.hamming_clustering_for_ivf_partition
result = [
    ds._ds.get_ivf_partition_info("v_idx", None),
    [found("v_idx", number, 1, None).read_all().to_pylist() for number in (0, 1)],
    ds._ds.hamming_clustering_for_range("v", 0, 5, 30, 1).read_all().to_pylist(),
    ds._ds.hamming_clustering_for_sample("v", None, 1).read_all().to_pylist(),
]
"""


def written(path: Path, values: np.ndarray) -> str:
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])
    return lance.write_dataset(pa.table({"v": lists}), str(path / "t.lance")).uri


@pytest.mark.parametrize(
    ("kind", "limit", "options"),
    [
        ("IVF_FLAT", 2.0, {}),
        ("IVF_FLAT", 0.1, {"metric": "cosine"}),
        ("IVF_FLAT", -4.0, {"metric": "dot"}),
        ("IVF_SQ", 2.0, {}),
        ("IVF_PQ", 2.0, {"num_sub_vectors": 4}),
    ],
)
def test_pairs_are_those_of_release_14(
    official_14: Official, tmp_path: Path, kind: str, limit: float, options: dict[str, Any]
) -> None:
    values = np.random.default_rng(8).integers(-1, 2, (600, 8)).astype(np.float32) + 0.125
    uri = written(tmp_path, values.astype(np.float32))
    expected = official_14.run(uri, PAIRS, kind=kind, limit=limit, options=options)
    found = vector.find_duplicate_pairs(lance.dataset(uri), "v", limit).read_all().to_pydict()
    assert found["row_id_a"]
    assert found["row_id_a"] == expected["row_id_a"]
    assert found["row_id_b"] == expected["row_id_b"]
    assert found["distance"] == pytest.approx(expected["distance"], abs=1e-4)


def test_clusters_are_those_of_release_14(official_14: Official, tmp_path: Path) -> None:
    uri = written(tmp_path, np.random.default_rng(8).integers(0, 2, (60, 8)).astype(np.uint8))
    expected = official_14.run(uri, CLUSTERS)
    ds = lance.dataset(uri)
    clusters = vector.hamming_clustering_for_ivf_partition
    assert [
        vector.get_ivf_partition_info(ds, "v_idx"),
        [clusters(ds, "v_idx", number, 1).read_all().to_pylist() for number in (0, 1)],
        vector.hamming_clustering_for_range(ds, "v", 0, 5, 30, 1).read_all().to_pylist(),
        vector.hamming_clustering_for_sample(ds, "v", None, 1).read_all().to_pylist(),
    ] == expected
