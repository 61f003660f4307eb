"""Scans that are ready to run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lancelake.pylance as lance
from lancelake.pylance import LanceDataset
from lancelake.pylance._dataset.scanner import LanceScanner
from tests.support.read_tables import Varied, varied


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Varied:
    """Return a table of 27 rows."""
    return varied(tmp_path_factory.mktemp("scanner") / "t.lance")


@pytest.fixture(scope="module")
def ds(table: Varied) -> LanceDataset:
    """Return the table, open."""
    return lance.dataset(table.uri)


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


def test_counts_of_an_index_read_no_column(tmp_path: Path) -> None:
    ds = lance.write_dataset(pa.table({"x": range(100)}), tmp_path / "x", max_rows_per_file=25)
    ds.create_scalar_index("x", "BTREE")
    counted = ds.scanner([], "x < 50", with_row_id=True).analyze_plan(count_rows=True)
    assert "CountFromMask: uri=" in counted
    assert "LanceRead" not in counted
    assert "LanceRead" in ds.scanner(["x"], "x < 50").analyze_plan()


def test_counts_of_rows_outside_an_index_read_them(tmp_path: Path) -> None:
    ds = lance.write_dataset(pa.table({"x": range(100)}), tmp_path / "x", max_rows_per_file=25)
    ds.create_scalar_index("x", "BTREE")
    ds.insert(pa.table({"x": [1, 2]}))
    counted = ds.scanner([], "x < 50", with_row_id=True).analyze_plan(count_rows=True)
    assert "CountFromMask: rows=50" in counted
    assert "LanceRead: uri=" in counted
