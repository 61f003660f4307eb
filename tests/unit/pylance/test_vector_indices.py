"""Vector indices: recall, filters, changed rows, upkeep, and refused requests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.engine.port import LocalEngine
from lancelake.errors import DamagedIndexError, MissingPackageError
from lancelake.table.index.build import IndexRun, create_index
from lancelake.table.index.parallel import BuiltByTasks
from lancelake.table.index.request import IndexRequest

DIMENSION = 8
ROWS = 900
CHANCE = np.random.default_rng(3)
MATRIX = CHANCE.standard_normal((ROWS, DIMENSION)).astype(np.float32)
QUERIES = CHANCE.standard_normal((10, DIMENSION)).astype(np.float32)
KINDS = {
    "IVF_FLAT": {},
    "IVF_SQ": {},
    "IVF_RQ": {"num_bits": 5},
    "IVF_PQ": {"num_sub_vectors": 4, "num_bits": 4},
    "IVF_HNSW_FLAT": {},
    "IVF_HNSW_SQ": {},
    "IVF_HNSW_PQ": {"num_sub_vectors": 4, "num_bits": 4},
}
LEAST_RECALL = {"FLAT": 1.0, "SQ": 0.9, "PQ": 0.3, "RQ": 0.8}


def column(values: np.ndarray) -> pa.FixedSizeListArray:
    return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])


def rows(start: int = 0, stop: int = ROWS) -> pa.Table:
    ids = pa.array(range(start, stop))
    return pa.table({"id": ids, "v": column(MATRIX[start:stop]), "n": ids})


def written(place: Path, stop: int = ROWS, **options: Any) -> lance.LanceDataset:
    uri = str(place / "t.lance")
    return lance.write_dataset(rows(0, stop), uri, max_rows_per_file=300, **options)


def ids(table: lance.LanceDataset, query: np.ndarray, k: int = 10, **options: Any) -> list[int]:
    scan = {n: options.pop(n) for n in ("filter", "prefilter", "fast_search") if n in options}
    near = {"column": "v", "q": query, "k": k, **options}
    found: list[int] = table.to_table(["id"], nearest=near, **scan)["id"].to_pylist()
    return found


def recall(table: lance.LanceDataset, metric: str = "l2", **options: Any) -> float:
    hits = 0
    for query in QUERIES:
        exact = ids(table, query, metric=metric, use_index=False)
        hits += len(set(exact) & set(ids(table, query, metric=metric, **options)))
    return hits / (10 * len(QUERIES))


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("kind", KINDS)
def test_all_partitions_hold_all_rows(tmp_path: Path, kind: str, metric: str) -> None:
    table = written(tmp_path)
    table.create_index("v", kind, metric=metric, num_partitions=3, **KINDS[kind])
    assert f"({kind})" in plan_of(table, metric=metric)
    assert recall(table, metric, nprobes=3) >= LEAST_RECALL[kind.rsplit("_", 1)[-1]]
    assert recall(table, metric, nprobes=3, refine_factor=40) >= 0.99
    assert sorted(ids(table, QUERIES[0], k=ROWS)) == list(range(ROWS))


def plan_of(table: lance.LanceDataset, **options: Any) -> str:
    near = {"column": "v", "q": QUERIES[0], "k": 5, **options}
    text: str = table.scanner(["id"], nearest=near).explain_plan()
    return text


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_HNSW_SQ"])
@pytest.mark.parametrize("stable", [False, True])
def test_rows_that_change_are_found_as_they_are(tmp_path: Path, kind: str, stable: bool) -> None:
    table = written(tmp_path, 600, enable_stable_row_ids=stable)
    table.create_index("v", kind, num_partitions=2)
    table.delete("id % 7 = 3")
    table.update({"v": f"[{', '.join(['5.0'] * DIMENSION)}]"}, where="id % 50 = 1")
    table = lance.write_dataset(rows(600), table.uri, mode="append")
    far = np.full(DIMENSION, 5, np.float32)
    expected = [i for i in range(ROWS) if i % 50 == 1 and i % 7 != 3 and i < 600]
    assert sorted(ids(table, far, k=len(expected), nprobes=2)) == expected
    assert recall(table, nprobes=2, refine_factor=5) == 1.0
    table.optimize.optimize_indices()
    assert recall(table, nprobes=2, refine_factor=5) == 1.0
    assert table.index_statistics("v_idx")["num_unindexed_rows"] == 0
    table.optimize.compact_files()
    assert "LanceRead" not in plan_of(table)
    assert recall(table, nprobes=2, refine_factor=5) == 1.0
    assert sorted(ids(table, far, k=len(expected), nprobes=2)) == expected


def test_moves_that_are_recorded_are_followed(tmp_path: Path) -> None:
    table = written(tmp_path)
    table.create_index("v", "IVF_FLAT", num_partitions=2)
    table.delete("id < 100")
    table.optimize.compact_files(defer_index_remap=True)
    assert recall(table, nprobes=2) == 1.0
    table.optimize.optimize_indices()
    assert recall(table, nprobes=2) == 1.0


def test_new_rows_become_a_segment_of_their_own(tmp_path: Path) -> None:
    table = written(tmp_path, 600)
    table.create_index("v", "IVF_FLAT", num_partitions=2)
    table = lance.write_dataset(rows(600), table.uri, mode="append")
    fast = ids(table, MATRIX[700], k=1, fast_search=True, nprobes=2)
    assert fast != [700]
    table.optimize.optimize_indices(num_indices_to_merge=0)
    assert table.index_statistics("v_idx")["num_indices"] == 2
    assert ids(table, MATRIX[700], k=1, fast_search=True, nprobes=2) == [700]
    assert recall(table, nprobes=2) == 1.0
    table.optimize.optimize_indices()
    assert table.index_statistics("v_idx")["num_indices"] == 1
    assert recall(table, nprobes=2) == 1.0


@pytest.mark.parametrize("share", [0.01, 0.1, 0.9])
def test_a_filter_leaves_k_rows(tmp_path: Path, share: float) -> None:
    table = lance.write_dataset(
        pa.table({"id": pa.array(range(6000)), "v": column(np.tile(MATRIX, (7, 1))[:6000])}),
        str(tmp_path / "t.lance"),
    )
    table.create_index("v", "IVF_FLAT", num_partitions=8)
    table.create_scalar_index("id", "BTREE")
    condition = f"id < {int(6000 * share)}"
    for query in QUERIES[:3]:
        found = ids(table, query, filter=condition, prefilter=True, nprobes=1, maximum_nprobes=8)
        assert len(found) == 10
        assert max(found) < 6000 * share


def test_nprobes_bounds_the_partitions(tmp_path: Path) -> None:
    table = written(tmp_path)
    table.create_index("v", "IVF_FLAT", num_partitions=6)
    sizes = [p["size"] for p in table.index_statistics("v_idx")["indices"][0]["partitions"]]
    assert sum(sizes) == ROWS
    assert len(ids(table, QUERIES[0], k=ROWS, nprobes=1)) in sizes


def test_several_queries_equal_single_ones(tmp_path: Path) -> None:
    table = written(tmp_path)
    table.create_index("v", "IVF_PQ", num_partitions=3, **KINDS["IVF_PQ"])
    near = {"column": "v", "q": QUERIES, "k": 4, "nprobes": 2}
    found = table.to_table(["id"], nearest=near)
    assert found["query_index"].to_pylist() == [i for i in range(len(QUERIES)) for _ in range(4)]
    single = [i for query in QUERIES for i in ids(table, query, k=4, nprobes=2)]
    assert found["id"].to_pylist() == single


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_float_types(tmp_path: Path, dtype: type) -> None:
    data = pa.table({"id": pa.array(range(ROWS)), "v": column(MATRIX.astype(dtype))})
    table = lance.write_dataset(data, str(tmp_path / "t.lance"))
    table.create_index("v", "IVF_FLAT", num_partitions=2)
    assert recall(table, nprobes=2) >= 0.98


def test_hamming_distances_of_bytes(tmp_path: Path) -> None:
    data = CHANCE.integers(0, 256, (ROWS, DIMENSION), dtype=np.uint8)
    table = lance.write_dataset(
        pa.table({"id": pa.array(range(ROWS)), "v": column(data)}), str(tmp_path / "t.lance")
    )
    table.create_index("v", "IVF_FLAT", metric="hamming", num_partitions=3)
    for query in data[:5]:
        exact = ids(table, query, use_index=False)
        assert ids(table, query, nprobes=3) == exact


def test_multivectors(tmp_path: Path) -> None:
    lists = [[MATRIX[i].tolist(), MATRIX[(i + 9) % ROWS].tolist()] for i in range(ROWS)]
    data = pa.table(
        {"id": pa.array(range(ROWS)), "v": pa.array(lists, pa.list_(pa.list_(pa.float32(), 8)))}
    )
    table = lance.write_dataset(data, str(tmp_path / "t.lance"))
    table.create_index("v", "IVF_FLAT", metric="cosine", num_partitions=2)
    near = {"column": "v", "q": MATRIX[[5, 14]], "k": 5, "metric": "cosine", "nprobes": 2}
    found = table.to_table(["id"], nearest=near)
    exact = table.to_table(["id"], nearest={**near, "use_index": False})
    assert found["id"].to_pylist() == exact["id"].to_pylist()
    assert found["id"][0].as_py() == 5


def test_vectors_that_are_not_finite_are_left_out(tmp_path: Path) -> None:
    values = column(MATRIX).to_pylist()
    values[4], values[5] = None, [float("nan")] * DIMENSION
    data = pa.table(
        {"id": pa.array(range(ROWS)), "v": pa.array(values, pa.list_(pa.float32(), DIMENSION))}
    )
    table = lance.write_dataset(data, str(tmp_path / "t.lance"))
    table.create_index("v", "IVF_SQ", num_partitions=2)
    assert sorted(ids(table, QUERIES[0], k=ROWS)) == [i for i in range(ROWS) if i not in (4, 5)]


def test_given_centroids_are_used(tmp_path: Path) -> None:
    table = written(tmp_path)
    table.create_index("v", "IVF_FLAT", ivf_centroids=MATRIX[:5])
    found = table.index_statistics("v_idx")["indices"][0]
    np.testing.assert_array_equal(np.array(found["centroids"], np.float32), MATRIX[:5])


def test_the_model_of_an_index(tmp_path: Path) -> None:
    table = written(tmp_path)
    table.create_index("v", "IVF_FLAT", metric="cosine", num_partitions=3)
    model = table.get_ivf_model("v_idx")
    assert (model.num_partitions, model.distance_type) == (3, "cosine")
    assert table.centroids(column="v") == model.centroids
    with pytest.raises(KeyError, match="No IVF index"):
        table.centroids(column="n")


def test_segments_of_workers_are_merged(tmp_path: Path) -> None:
    table = written(tmp_path)
    parts = [
        table.create_index_uncommitted(
            "v", "IVF_SQ", name="v_idx", ivf_centroids=MATRIX[:3], fragment_ids=[fragment]
        )
        for fragment in (0, 1, 2)
    ]
    table = table.commit_existing_index_segments("v_idx", "v", parts)
    assert "deltas=3" in plan_of(table)
    assert recall(table, nprobes=3, refine_factor=5) == 1.0


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_SQ", "IVF_PQ"])
def test_tasks_share_one_model(tmp_path: Path, kind: str) -> None:
    table = written(tmp_path)
    parameters = {"metric_type": "l2", "num_partitions": 2, **KINDS[kind]}
    request = IndexRequest(column="v", kind=kind, parameters=parameters)
    run = IndexRun(builder=BuiltByTasks(LocalEngine(parallelism=3)))
    create_index(table._snapshot, request, run)
    table = lance.dataset(table.uri)
    assert "deltas=1" in plan_of(table)
    assert table.index_statistics("v_idx")["num_indexed_rows"] == ROWS
    assert recall(table, nprobes=2, refine_factor=40) >= 0.99


def test_another_metric_than_that_of_the_index_is_searched_exactly(tmp_path: Path) -> None:
    table = written(tmp_path)
    table.create_index("v", "IVF_FLAT", metric="cosine", num_partitions=2)
    assert "ANNSubIndex" not in plan_of(table, metric="l2")
    with pytest.raises(ValueError, match="has the metric cosine, not l2"):
        ids(table, QUERIES[0], metric="l2", fast_search=True)


def test_an_empty_index_finds_rows_by_scanning(tmp_path: Path) -> None:
    table = written(tmp_path)
    table.create_index("v", "IVF_FLAT", train=False)
    assert recall(table) == 1.0
    table.optimize.optimize_indices()
    assert table.index_statistics("v_idx")["num_unindexed_rows"] == 0
    assert recall(table, nprobes=4) == 1.0


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    table = written(tmp_path)
    table.create_index("v", "IVF_FLAT", num_partitions=2)
    (path,) = (tmp_path / "t.lance" / "_indices").glob("*/auxiliary.idx")
    path.write_bytes(path.read_bytes()[:100])
    damaged = lance.dataset(table.uri)
    with pytest.raises(
        DamagedIndexError, match=r"index 'v_idx' cannot be searched.*use_index=False"
    ):
        ids(damaged, QUERIES[0])
    assert ids(damaged, QUERIES[0], use_index=False)


@pytest.mark.parametrize(
    ("kind", "options", "problem"),
    [
        ("IVF_PQ", {}, "num_sub_vectors are required"),
        ("IVF_PQ", {"num_sub_vectors": 3}, "must be divisible by num_sub_vectors"),
        ("IVF_FLAT", {"metric": "other"}, "Metric other not supported"),
        ("IVF_FLAT", {"metric": "hamming"}, "hamming distances of float32"),
        ("IVF_FLAT", {"num_partitions": 0}, "must be a positive integer"),
        ("IVF_FLAT", {"partitions": 4}, "has no parameter 'partitions'"),
        ("IVF_FLAT", {"ivf_centroids": MATRIX[:2, :4]}, "ivf_centroids have 4 values"),
        ("IVF_FLAT", {"index_file_version": "legacy"}, "file version V3"),
        ("IVF_FLAT", {"accelerator": "tpu"}, "accelerator"),
        ("IVF_RQ", {"num_bits": 10}, "must be 1 to 9"),
        ("IVF_OTHER", {}, "is not a kind of index"),
    ],
)
def test_refused_builds(tmp_path: Path, kind: str, options: dict[str, Any], problem: str) -> None:
    table = written(tmp_path)
    with pytest.raises(ValueError, match=problem):
        table.create_index("v", kind, **options)


def test_a_column_without_vectors_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="does not index column 'n'"):
        written(tmp_path).create_index("n", "IVF_FLAT")


def test_too_few_rows_for_a_codebook(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Requires 256 rows but only 100"):
        written(tmp_path, 100).create_index("v", "IVF_PQ", num_sub_vectors=4)


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingPackageError, match=r"lancelake\[search\]"):
        written(tmp_path).create_index("v", "IVF_FLAT")


def test_an_index_of_a_nested_vector_is_refreshed(tmp_table: str) -> None:
    def rows(first: int) -> pa.Table:
        values = pa.array([float(first + i) for i in range(600)], pa.float32())
        vectors = pa.FixedSizeListArray.from_arrays(values, 2)
        return pa.table({"s": pa.StructArray.from_arrays([vectors], names=["v"])})

    table = lance.write_dataset(rows(0), tmp_table)
    table.create_index("s.v", "IVF_FLAT", num_partitions=2)
    table.insert(rows(1000))
    table.optimize.optimize_indices()
    assert table.index_statistics("s.v_idx")["num_unindexed_rows"] == 0
