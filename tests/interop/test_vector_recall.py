"""Recall of vector searches is not below that of release 14, on clustered and uniform data.

`make vector-recall` takes a million vectors of 128 values; `make test` a sample.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from tests.support.official import Official

ROWS = int(os.environ.get("LANCELAKE_RECALL_ROWS") or 4000)
IS_WHOLE = ROWS >= 100_000
DIMENSION = 128 if IS_WHOLE else 32
PARTITIONS = max(4, ROWS // 8192)
QUERIES, K = 400 if IS_WHOLE else 50, 10
# A build of a million rows by a release takes minutes, on a busy machine much longer.
BUILD_TIMEOUT_S = 7200.0
# Clusterings differ by chance.
SLACK = 0.02 if IS_WHOLE else 0.05
KINDS: dict[str, dict[str, Any]] = {
    "IVF_FLAT": {},
    "IVF_SQ": {},
    "IVF_PQ": {"num_sub_vectors": DIMENSION // 8},
    "IVF_RQ": {"num_bits": 5},
    "IVF_HNSW_FLAT": {},
    "IVF_HNSW_SQ": {},
    "IVF_HNSW_PQ": {"num_sub_vectors": DIMENSION // 8},
}
SHORT = ["IVF_FLAT", "IVF_SQ", "IVF_PQ", "IVF_RQ", "IVF_HNSW_SQ"]
SEARCH = """
import numpy as np
ds = lance.dataset(uri)
ds = ds.create_index("v", kind, num_partitions=partitions, replace=True, **options)
result = []
for settings in asked:
    found = []
    for query in np.load(queries):
        near = dict(column="v", q=query, k=k, **settings)
        found.append(ds.to_table(columns=["id", "_distance"], nearest=near)["id"].to_pylist())
    result.append(found)
"""
ASKED: list[dict[str, Any]] = [
    {"nprobes": 1},
    {"nprobes": max(2, PARTITIONS // 8)},
    {"nprobes": max(2, PARTITIONS // 8), "refine_factor": 5},
]


def values(kind: str) -> np.ndarray:
    chance = np.random.default_rng(9)
    if kind == "uniform":
        return chance.random((ROWS + QUERIES, DIMENSION), dtype=np.float32)
    centers = 4 * chance.standard_normal((max(8, ROWS // 1000), DIMENSION))
    chosen = centers[chance.integers(0, len(centers), ROWS + QUERIES)]
    return (chosen + chance.standard_normal(chosen.shape)).astype(np.float32)


def recall(found: list[list[int]], exact: list[list[int]]) -> float:
    return sum(len(set(a) & set(b)) for a, b in zip(found, exact, strict=True)) / (K * QUERIES)


@pytest.mark.parametrize("data", ["clustered", "uniform"])
@pytest.mark.parametrize("kind", list(KINDS) if IS_WHOLE else SHORT)
def test_recall_is_not_below_that_of_release_14(
    official_14: Official, tmp_path: Path, kind: str, data: str
) -> None:
    official_14.timeout_s = BUILD_TIMEOUT_S
    matrix = values(data)
    queries = tmp_path / "queries.npy"
    np.save(queries, matrix[ROWS:])
    lists = pa.FixedSizeListArray.from_arrays(pa.array(matrix[:ROWS].reshape(-1)), DIMENSION)
    rows = pa.table({"id": range(ROWS), "v": lists})
    ours, theirs = (str(tmp_path / f"{name}.lance") for name in ("ours", "theirs"))
    for uri in (ours, theirs):
        lance.write_dataset(rows, uri)
    table = lance.dataset(ours)
    near = {"column": "v", "q": matrix[ROWS:], "k": K}

    def searched(**settings: Any) -> list[list[int]]:
        found = table.to_table(["id"], nearest={**near, **settings})["id"].to_pylist()
        return [found[start : start + K] for start in range(0, len(found), K)]

    exact = searched(use_index=False)
    options = KINDS[kind]
    inputs = {"kind": kind, "partitions": PARTITIONS, "options": options, "k": K}
    expected = official_14.run(theirs, SEARCH, asked=ASKED, queries=str(queries), **inputs)
    table.create_index("v", kind, num_partitions=PARTITIONS, **options)
    for settings, other in zip(ASKED, expected, strict=True):
        mine = recall(searched(**settings), exact)
        assert mine >= recall(other, exact) - SLACK, settings
