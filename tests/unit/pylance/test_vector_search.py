"""Exact vector search: distances, filters, columns of the result, and refused requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lancelake.pylance as lance

DIMENSION = 4
ROWS = 100
CHANCE = np.random.default_rng(7)
MATRIX = CHANCE.random((ROWS, DIMENSION), dtype=np.float32)


def vectors(values: np.ndarray) -> pa.FixedSizeListArray:
    return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])


def bfloat16(values: np.ndarray) -> np.ndarray:
    return (values.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)


def bfloat16_column(values: np.ndarray) -> tuple[pa.Field, pa.Array]:
    half = (values.astype(np.float32).view(np.uint32) >> 16).astype("<u2")
    items = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(2), half.size, [None, pa.py_buffer(half.tobytes())]
    )
    item = pa.field("item", pa.binary(2), metadata={"ARROW:extension:name": "lance.bfloat16"})
    dtype = pa.list_(item, values.shape[1])
    storage = pa.FixedSizeListArray.from_arrays(items, type=dtype)
    return pa.field("b16", dtype), storage


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> lance.LanceDataset:
    listed = vectors(MATRIX).to_pylist()
    listed[5], listed[6], listed[8] = None, [float("nan")] * DIMENSION, [0.0] * DIMENSION
    several = [[MATRIX[i].tolist(), MATRIX[(i + 1) % ROWS].tolist()] for i in range(ROWS)]
    several[3], several[4] = None, []  # type: ignore[call-overload]
    field, b16 = bfloat16_column(MATRIX)
    columns = {
        "id": pa.array(range(ROWS)),
        "v": pa.array(listed, pa.list_(pa.float32(), DIMENSION)),
        "f16": vectors(MATRIX.astype(np.float16)),
        "f64": vectors(MATRIX.astype(np.float64)),
        "b16": b16,
        "u8": vectors((MATRIX * 255).astype(np.uint8)),
        "m": pa.array(several, pa.list_(pa.list_(pa.float32(), DIMENSION))),
        "s": pa.array(["text"] * ROWS),
    }
    schema = pa.schema([pa.field(n, c.type) if n != "b16" else field for n, c in columns.items()])
    uri = tmp_path_factory.mktemp("vectors") / "t.lance"
    rows = pa.table(columns, schema=schema)
    return lance.write_dataset(rows, str(uri), max_rows_per_file=30)


def near(table: lance.LanceDataset, **options: Any) -> pa.Table:
    scan = {name: options.pop(name) for name in ("filter", "prefilter") if name in options}
    asked = {"column": "v", "q": MATRIX[0], "k": 5, **options}
    return table.to_table(columns=["id"], nearest=asked, **scan)


def expected(distances: np.ndarray, k: int = 5) -> list[int]:
    found = np.flatnonzero(~np.isnan(distances))
    return found[np.argsort(distances[found], kind="stable")][:k].tolist()


def stored() -> np.ndarray:
    found = MATRIX.copy()
    found[[5, 6]], found[8] = np.nan, 0
    return found


def test_l2_is_exact(table: lance.LanceDataset) -> None:
    distances = ((stored() - MATRIX[0]) ** 2).sum(axis=1)
    found = near(table)
    assert found["id"].to_pylist() == expected(distances)
    np.testing.assert_allclose(found["_distance"], np.sort(distances)[:5], rtol=1e-5, atol=1e-7)


def test_cosine_leaves_out_vectors_without_direction(table: lance.LanceDataset) -> None:
    found = near(table, metric="cosine", k=ROWS)
    assert found["id"].to_pylist()[0] == 0
    assert not {5, 6, 8} & set(found["id"].to_pylist())
    assert len(found) == ROWS - 3


def test_dot_is_one_minus_the_product(table: lance.LanceDataset) -> None:
    distances = 1 - stored() @ MATRIX[0]
    assert near(table, metric="dot")["id"].to_pylist() == expected(distances)


@pytest.mark.parametrize(("column", "tolerance"), [("f16", 1e-3), ("f64", 1e-6), ("b16", 1e-2)])
def test_other_float_columns(table: lance.LanceDataset, column: str, tolerance: float) -> None:
    found = near(table, column=column)
    exact = ((MATRIX - MATRIX[0]) ** 2).sum(axis=1)
    assert found["id"][0].as_py() == 0
    np.testing.assert_allclose(
        found["_distance"], exact[found["id"].to_numpy()], atol=5 * tolerance
    )


def test_hamming_counts_bits(table: lance.LanceDataset) -> None:
    data = (MATRIX * 255).astype(np.uint8)
    distances = np.bitwise_count(data ^ data[9]).sum(axis=1)
    found = near(table, column="u8", q=data[9])
    assert found["_distance"].to_pylist() == sorted(distances.tolist())[:5]
    assert found["id"].to_pylist() == expected(distances.astype(float))


def test_a_multivector_row_is_as_near_as_its_nearest_vectors(table: lance.LanceDataset) -> None:
    found = near(table, column="m", q=MATRIX[10:12], k=ROWS)
    assert found["id"].to_pylist()[0] == 10
    assert found["_distance"].to_pylist()[0] == pytest.approx(0)
    assert not {3, 4} & set(found["id"].to_pylist())


@pytest.mark.parametrize("is_indexed", [False, True], ids=["exact", "indexed"])
def test_vectors_of_nan_do_not_hide_the_others_of_a_multivector_row(
    tmp_path: Path, *, is_indexed: bool
) -> None:
    nothing = [float("nan")] * MATRIX.shape[1]
    rows = [[vector.tolist()] for vector in MATRIX]
    rows[5].append(nothing)
    rows[6] = [nothing, nothing]
    lists = pa.array(rows, pa.list_(pa.list_(pa.float32(), MATRIX.shape[1])))
    ds = lance.write_dataset(pa.table({"id": range(len(rows)), "m": lists}), tmp_path / "t")
    if is_indexed:
        ds.create_index("m", "IVF_FLAT", num_partitions=1, metric="cosine")
    found = near(ds, column="m", q=MATRIX[5:6], k=len(rows), metric="cosine")["id"].to_pylist()
    assert found[0] == 5
    assert sorted(found) == [row for row in range(len(rows)) if row != 6]


def test_several_queries_have_their_own_rows(table: lance.LanceDataset) -> None:
    found = near(table, q=MATRIX[20:50], k=2)
    assert found.schema.names == ["query_index", "id", "_distance"]
    assert found["query_index"].to_pylist() == [i for i in range(30) for _ in range(2)]
    assert found["id"].to_pylist()[::2] == list(range(20, 50))
    for place, query in enumerate(MATRIX[20:50]):
        alone = near(table, q=query, k=2)
        assert found["id"].to_pylist()[2 * place : 2 * place + 2] == alone["id"].to_pylist()


def test_a_filter_is_applied_before_or_after(table: lance.LanceDataset) -> None:
    before = near(table, filter="id > 50", prefilter=True)
    after = near(table, filter="id > 50")
    assert len(before) == 5
    assert set(after["id"].to_pylist()) == {i for i in near(table)["id"].to_pylist() if i > 50}


def test_a_filter_after_the_search_can_use_the_distance(table: lance.LanceDataset) -> None:
    assert near(table, filter="_distance < 0.000001 and s = 'text'")["id"].to_pylist() == [0]


def test_the_distance_range_is_applied_before_the_ranking(table: lance.LanceDataset) -> None:
    whole = near(table, k=ROWS)["_distance"].to_numpy()
    found = near(table, distance_range=(whole[10], whole[13]))["_distance"].to_numpy()
    np.testing.assert_array_equal(found, whole[10:13])


def test_deleted_rows_are_not_found(tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array(range(ROWS)), "v": vectors(MATRIX)})
    changed = lance.write_dataset(rows, str(tmp_path / "t.lance"))
    changed.delete("id = 0")
    assert 0 not in near(changed)["id"].to_pylist()


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        (["_distance", "id"], ["_distance", "id"]),
        (["id"], ["id", "_distance", "_rowid"]),
        ({"twice": "_distance * 2"}, ["twice", "_distance", "_rowid"]),
    ],
)
def test_columns_of_the_result(table: lance.LanceDataset, columns: Any, names: list[str]) -> None:
    asked = {"column": "v", "q": MATRIX[0], "k": 3}
    found = table.to_table(columns=columns, nearest=asked, with_row_id="_rowid" in names)
    assert found.schema.names == names


def test_hidden_scores(table: lance.LanceDataset) -> None:
    asked = {"column": "v", "q": MATRIX[0], "k": 3}
    found = table.to_table(["id"], nearest=asked, disable_scoring_autoprojection=True)
    assert found.schema.names == ["id"]


def test_limit_offset_and_order(table: lance.LanceDataset) -> None:
    asked = {"column": "v", "q": MATRIX[0], "k": 5}
    whole = table.to_table(["id"], nearest=asked)["id"].to_pylist()
    part = table.to_table(["id"], nearest=asked, limit=2, offset=1)["id"].to_pylist()
    assert part == whole[1:3]
    ordered = table.to_table(["s"], nearest=asked, order_by=["id"], with_row_id=True)
    assert ordered["_rowid"].to_pylist() == sorted(ordered["_rowid"].to_pylist())


def test_a_query_that_is_no_number_finds_nothing(table: lance.LanceDataset) -> None:
    assert len(near(table, q=np.full(DIMENSION, np.nan, np.float32))) == 0


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"k": 0}, "Nearest-K must be > 0"),
        ({"q": np.zeros(3, np.float32)}, "Query vector size 3 does not match"),
        ({"column": "missing"}, "Embedding column missing is not in the dataset"),
        ({"column": "s"}, "must be a vector"),
        ({"metric": "other"}, "Metric type 'other' is not supported"),
        ({"metric": "hamming"}, "hamming does not support float32"),
        ({"column": "u8", "metric": "l2"}, "l2 does not support uint8"),
        ({"refine_factor": 0}, "Refine factor must be 1 or more"),
        ({"nprobes": 0}, "Nprobes must be > 0"),
        ({"minimum_nprobes": 3, "maximum_nprobes": 1}, "minimum_nprobes must be <="),
        ({"q": [[1.0, 2.0, 3.0, 4.0], [1.0]]}, "must have the same length"),
        ({"distance_range": (1.0,)}, "distance_range must be a tuple"),
    ],
)
def test_refused_requests(table: lance.LanceDataset, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        near(table, **options)


def test_an_unknown_option_is_refused(table: lance.LanceDataset) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        near(table, probes=3)


def test_the_plan_names_metric_and_filter(table: lance.LanceDataset) -> None:
    asked = {"column": "v", "q": MATRIX[0], "k": 3, "metric": "cosine"}
    scan = table.scanner(["id"], "id > 3", nearest=asked, prefilter=True)
    text = scan.explain_plan()
    assert "KNNVectorDistance: column=v, k=3, metric=cosine" in text
    assert "Filter: id > 3" in text
    assert scan.count_rows() == 3


def test_the_limit_is_the_number_of_neighbours_if_none_is_given(table: lance.LanceDataset) -> None:
    asked = {"column": "v", "q": MATRIX[0]}
    assert table.to_table(["id"], nearest=asked, limit=12).num_rows == 12
    assert table.to_table(["id"], nearest={**asked, "k": 3}, limit=12).num_rows == 3


def test_a_search_does_not_return_deleted_rows(table: lance.LanceDataset) -> None:
    asked = {"column": "v", "q": MATRIX[0]}
    with pytest.raises(ValueError, match="Cannot include deleted rows"):
        table.to_table(nearest=asked, with_row_id=True, include_deleted_rows=True)


def test_unknown_segments_and_threads_are_refused(table: lance.LanceDataset) -> None:
    asked = {"column": "v", "q": MATRIX[0]}
    with pytest.raises(ValueError, match="referenced unknown index segments: x"):
        table.scanner(nearest=asked, index_segments=["x"])
    with pytest.raises(ValueError, match="query_parallelism"):
        table.scanner(nearest={**asked, "query_parallelism": -2})
