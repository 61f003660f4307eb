"""The scanner builder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError
from lancelake.pylance import LanceDataset
from lancelake.pylance._dataset.scan_arguments import request_columns, row_numbers
from lancelake.pylance._dataset.scanner import (
    ColumnOrdering,
    LanceScanner,
    ScannerBuilder,
)
from tests.support.read_tables import Varied, varied


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Varied:
    """Return a table of 27 rows."""
    return varied(tmp_path_factory.mktemp("scanner") / "t.lance")


@pytest.fixture(scope="module")
def ds(table: Varied) -> LanceDataset:
    """Return the table, open."""
    return lance.dataset(table.uri)


def test_steps_add_up(ds: LanceDataset) -> None:
    builder = ScannerBuilder(ds).columns(["key"]).filter("key > 10").limit(2).offset(1)
    scanner = builder.with_row_id().order_by(["key"]).batch_size(1).to_scanner()
    assert scanner.to_table()["key"].to_pylist() == [12, 14]
    assert scanner.projected_schema.names == ["key", "_rowid"]


def test_later_step_replaces_an_earlier_one(ds: LanceDataset) -> None:
    scanner = ScannerBuilder(ds).limit(1).limit(None).filter("key = 0").to_scanner()
    assert scanner.to_table().num_rows == 1


def test_options_are_steps(ds: LanceDataset) -> None:
    builder = ScannerBuilder(ds).apply_defaults({"limit": 3, "with_row_id": True})
    assert builder.to_scanner().to_table().num_rows == 3


def test_unknown_option_is_refused(ds: LanceDataset) -> None:
    with pytest.raises(InvalidRequestError, match="nosuch"):
        ScannerBuilder(ds).apply_defaults({"nosuch": 1})


@pytest.mark.parametrize(
    "step",
    [
        lambda b: b.io_buffer_size(10),
        lambda b: b.scan_in_order(False),
        lambda b: b.prefilter(True),
        lambda b: b.use_stats(False),
        lambda b: b.use_scalar_index(False),
        lambda b: b.fast_search(True),
        lambda b: b.batch_readahead(3),
        lambda b: b.fragment_readahead(3),
        lambda b: b.disable_scoring_autoprojection(),
        lambda b: b.with_fragments(None),
        lambda b: b.blob_handling("blobs_descriptions"),
    ],
)
def test_step_that_tunes_changes_no_row(ds: LanceDataset, table: Varied, step: Any) -> None:
    assert step(ScannerBuilder(ds)).to_scanner().to_table().num_rows == table.rows.num_rows


@pytest.mark.parametrize(
    ("step", "error", "words"),
    [
        (lambda b: b.limit(-1), ValueError, "Limit must be non-negative"),
        (lambda b: b.offset(-1), ValueError, "Offset must be non-negative"),
        (lambda b: b.limit("1"), TypeError, "integer"),
        (lambda b: b.offset(1.5), TypeError, "integer"),
        (lambda b: b.batch_size(0), ValueError, "batch_size"),
        (lambda b: b.batch_readahead(-1), ValueError, "batch_readahead"),
        (lambda b: b.fragment_readahead(-1), ValueError, "fragment_readahead"),
        (lambda b: b.columns("key"), TypeError, "columns must be a list or dict"),
        (lambda b: b.columns([5]), TypeError, "strings"),
        (lambda b: b.late_materialization("key"), ValueError, "bool or a list of strings"),
        (lambda b: b.late_materialization([1]), ValueError, "bool or a list of strings"),
        (lambda b: b.with_fragments([1]), TypeError, "iterable of LanceFragment"),
        (lambda b: b.nearest("key", [1.0], k=0), ValueError, "Nearest-K"),
        (lambda b: b.full_text_search(5), TypeError, "full text query"),
        (lambda b: b.full_text_search({"text": "x"}), ValueError, "keys"),
        (lambda b: b.blob_handling("nonsense"), ValueError, "nonsense"),
        (lambda b: b.include_deleted_rows(True).to_scanner(), ValueError, "with_row_id"),
    ],
)
def test_wrong_step_is_refused(
    ds: LanceDataset, step: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        step(ScannerBuilder(ds))


def test_fragments_may_come_from_an_iterator(ds: LanceDataset) -> None:
    chosen = iter([ds.get_fragment(4), ds.get_fragment(3)])
    found = ScannerBuilder(ds).with_fragments(chosen).to_scanner().to_table()
    assert found["key"].to_pylist() == [36, 31, 32, 33, 34]


def test_order_is_by_name_or_by_key(ds: LanceDataset) -> None:
    order = [ColumnOrdering("n", ascending=False, nulls_first=True), "key"]
    scanner = ScannerBuilder(ds).columns(["key"]).order_by(order).limit(5).to_scanner()
    assert scanner.to_table()["key"].to_pylist() == [31, 32, 33, 34, 36]


def test_schemas_of_result_and_table(ds: LanceDataset) -> None:
    scanner = ds.scanner(columns={"twice": "key * 2"}, with_row_id=True)
    assert scanner.projected_schema == pa.schema([("twice", pa.int64()), ("_rowid", pa.uint64())])
    assert scanner.dataset_schema == ds.schema


def test_rows_come_as_table_stream_batches_and_pandas(ds: LanceDataset, table: Varied) -> None:
    scanner = ds.scanner(columns=["key"])
    assert scanner.to_table()["key"].to_pylist() == table.keys
    assert scanner.to_reader().read_all()["key"].to_pylist() == table.keys
    batches = pa.Table.from_batches(scanner.to_batches())
    assert batches["key"].to_pylist() == table.keys
    assert scanner.to_pandas()["key"].tolist() == table.keys


@pytest.mark.parametrize(
    ("limit", "asked", "rows"), [(None, 5, 5), (3, 5, 3), (3, 2, 2), (0, 5, 0)]
)
def test_head_is_within_the_limit(
    ds: LanceDataset, limit: int | None, asked: int, rows: int
) -> None:
    assert ds.scanner(limit=limit).head(asked).num_rows == rows


def test_rows_of_the_result_are_counted(ds: LanceDataset) -> None:
    assert ds.scanner(columns=[], with_row_id=True, filter="key < 10").count_rows() == 7
    assert ds.scanner(columns=[], filter=pc.field("key") < 10).count_rows() == 7


def test_plan_in_words_names_the_filter(ds: LanceDataset) -> None:
    scanner = ds.scanner(filter="key < 10")
    assert "key < 10" in scanner.explain_plan()
    assert "output_rows=7" in scanner.analyze_plan()


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.take([0]),
        lambda s: s.scan_batches(),
        lambda _: LanceScanner.from_dataset(),
        lambda _: LanceScanner.from_fragment(),
        lambda _: LanceScanner.from_batches(),
    ],
)
def test_what_pylance_does_not_offer_is_refused(ds: LanceDataset, call: Any) -> None:
    with pytest.raises(NotImplementedError):
        call(ds.scanner())


@pytest.mark.parametrize(
    "indices",
    [[1, 2], (1, 2), range(1, 3), pa.array([1, 2]), pa.chunked_array([[1], [2]]), np.array([1, 2])],
    ids=str,
)
def test_row_numbers_are_taken_from_anything_with_integers(indices: Any) -> None:
    assert row_numbers(indices).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("indices", "error"),
    [([-1], OverflowError), ([1.5], TypeError), (["1"], TypeError), ([None], TypeError)],
)
def test_anything_else_is_no_row_number(indices: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        row_numbers(indices)


@pytest.mark.parametrize("columns", ["key", ("key",), {"key"}, 5])
def test_columns_are_a_list_or_a_dict(columns: Any) -> None:
    with pytest.raises(TypeError, match="columns must be a list or dict"):
        request_columns(columns)


def test_a_plan_names_the_columns_that_it_reads() -> None:
    rows = pa.table({"a": [1, 2], "b": [3, 4], "c": [5, 6], "d": [7, 8]})
    made = lance.write_dataset(rows, "memory://explained")
    text = made.scanner({"x": "b + 1", "c": "c"}, filter="a > 1").explain_plan()
    assert "num_fragments=1, projection=[b, c, a]" in text
    assert "Output: x, c" in text


def test_an_analysis_counts_rows_and_bytes() -> None:
    made = lance.write_dataset(pa.table({"a": [1, 2, 3]}), "memory://analysed")
    text = made.scanner(filter="a > 1").analyze_plan()
    assert text.startswith("AnalyzeExec: rows=2, bytes=16, batches=1, elapsed_ms=")
    assert (
        made.scanner(filter="a > 1")
        .analyze_plan(count_rows=True)
        .startswith("AnalyzeExec: rows=2, bytes=0")
    )


def test_an_analysis_shows_the_reads_of_the_scan_and_of_planning(tmp_path: Path) -> None:
    made = lance.write_dataset(pa.table({"a": range(5000)}), str(tmp_path / "t"))
    made.create_scalar_index("a", "BTREE")
    text = made.scanner(filter="a < 7").analyze_plan()
    scan, _, planning = text.splitlines()[3:6]
    assert re.search(r"LanceRead: .*\[rows_scanned=7, bytes_read=\d+ \(at most\), iops=1", scan)
    assert re.search(r"Planning: metrics=\[rows_scanned=\d+, bytes_read=\d+", planning)
