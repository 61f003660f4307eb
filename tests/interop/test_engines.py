"""DuckDB, Polars and pandas read a table like the same rows in memory."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import lance as official
import polars as pl
import polars.testing
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pytest

import lancelake.pylance as lance
from lancelake.pylance import LanceDataset

ROWS = 400


def made() -> pa.Table:
    """Return rows of many types, with nulls."""
    start = dt.datetime(2020, 1, 1)
    moments = [start + dt.timedelta(hours=i) for i in range(ROWS)]
    member = pa.struct([("x", pa.int64()), ("y", pa.string())])
    columns = {
        "a": pa.array([None if i % 7 == 0 else i for i in range(ROWS)], pa.int64()),
        "i8": pa.array([i % 100 for i in range(ROWS)], pa.int8()),
        "f": pa.array([None if i % 5 == 0 else i / 4 for i in range(ROWS)], pa.float64()),
        "s": pa.array([None if i % 3 == 0 else f"s{i % 10}" for i in range(ROWS)]),
        "day": pa.array([moment.date() for moment in moments]),
        "ts": pa.array(moments, pa.timestamp("us")),
        "tz": pa.array(moments, pa.timestamp("us", "UTC")),
        "dec": pa.array([Decimal(i) / 100 for i in range(ROWS)], pa.decimal128(10, 2)),
        "b": pa.array([i % 2 == 0 for i in range(ROWS)]),
        "bin": pa.array([bytes([i % 256]) for i in range(ROWS)]),
        "st": pa.array(
            [None if i % 4 == 0 else {"x": i, "y": str(i)} for i in range(ROWS)], member
        ),
        "l": pa.array([[i, i + 1] for i in range(ROWS)], pa.list_(pa.int64())),
    }
    return pa.table(columns)


@pytest.fixture(scope="module")
def ds(tmp_path_factory: pytest.TempPathFactory) -> LanceDataset:
    """Return a table of several fragments with deletions."""
    path = tmp_path_factory.mktemp("engines") / "t.lance"
    whole = made()
    for start in range(0, ROWS, 150):
        part = pa.table({n: pa.concat_arrays(c.chunks) for n, c in _columns(whole, start)})
        official.write_dataset(part, path, mode="append", data_storage_version="2.1")
    official.dataset(path).delete("a = 5 OR a BETWEEN 200 AND 220")
    return lance.dataset(path)


def _columns(table: pa.Table, start: int) -> list[tuple[str, pa.ChunkedArray]]:
    part = table.slice(start, 150)
    # A slice is copied: the writing release fails on slices of nulls.
    return [(n, part[n].take(pa.array(range(part.num_rows)))) for n in part.column_names]


@pytest.fixture(scope="module")
def rows(ds: LanceDataset) -> pa.Table:
    """Return the same rows in memory."""
    gone = [i == 5 or 200 <= i <= 220 for i in range(ROWS)]
    kept = [not g or i % 7 == 0 for i, g in enumerate(gone)]
    return made().filter(pa.array(kept))


QUERIES = [
    "SELECT count(*) FROM {t}",
    "SELECT * FROM {t} ORDER BY ts",
    "SELECT a, s FROM {t} WHERE a > 390 ORDER BY a",
    "SELECT sum(a), min(f), max(s) FROM {t} WHERE s = 's1'",
    "SELECT s, count(*) FROM {t} GROUP BY s ORDER BY s NULLS FIRST",
    "SELECT count(*) FROM {t} WHERE f > 50",
    "SELECT count(*) FROM {t} WHERE f IS NULL",
    "SELECT count(*) FROM {t} WHERE s IN ('s1', 's2') OR s IS NULL",
    "SELECT count(*) FROM {t} WHERE s LIKE 's1%' AND a BETWEEN 10 AND 300",
    "SELECT count(*) FROM {t} WHERE NOT b",
    "SELECT count(*) FROM {t} WHERE i8 = 5",
    "SELECT count(*) FROM {t} WHERE day = DATE '2020-01-05'",
    "SELECT count(*) FROM {t} WHERE ts > TIMESTAMP '2020-01-10 00:00:00'",
    "SELECT count(*) FROM {t} WHERE tz > TIMESTAMPTZ '2020-01-10 00:00:00+00'",
    "SELECT count(*) FROM {t} WHERE dec > 1.25",
    "SELECT count(*) FROM {t} WHERE bin = '\\x05'::BLOB",
    "SELECT st.x FROM {t} WHERE st.x > 390 ORDER BY 1",
    "SELECT count(*) FROM {t} WHERE st IS NULL",
    "SELECT l[1] FROM {t} WHERE a = 100",
    "SELECT a FROM {t} ORDER BY a DESC NULLS LAST LIMIT 3 OFFSET 1",
    "SELECT l.a FROM {t} l JOIN {t} r ON l.a = r.a + 1 WHERE l.a < 5 ORDER BY 1",
]


@pytest.mark.parametrize("query", QUERIES)
def test_duckdb_answers_as_for_rows_in_memory(ds: LanceDataset, rows: pa.Table, query: str) -> None:
    connection = duckdb.connect()
    connection.register("ours", ds)
    connection.register("memory", rows)
    found = connection.execute(query.format(t="ours")).fetchall()
    assert found == connection.execute(query.format(t="memory")).fetchall()


def test_duckdb_finds_a_table_by_the_name_of_its_variable(ds: LanceDataset) -> None:
    here = ds
    assert duckdb.sql("SELECT count(*) FROM here WHERE a IS NULL").fetchall() == [(58,)]
    assert here is ds


FILTERS = [
    pl.col("a") > 390,
    ~(pl.col("a") > 50),
    pl.col("a").is_in([1, 2, 3]),
    (pl.col("a") + 3) < 100,
    pl.col("s") == "s1",
    pl.col("s").is_null(),
    pl.col("s").str.starts_with("s1"),
    pl.col("f") > 50,
    (pl.col("f") > 50) & (pl.col("i8") == 5),
    pl.col("day") == dt.date(2020, 1, 5),
    pl.col("ts") > dt.datetime(2020, 1, 10),
    pl.col("tz") > dt.datetime(2020, 1, 10, tzinfo=dt.UTC),
    pl.col("dec") > Decimal("1.25"),
    pl.col("b"),
    pl.col("bin") == b"\x05",
    pl.col("st").struct.field("x") > 390,
]


@pytest.mark.parametrize("filter", FILTERS, ids=str)
def test_polars_filters_as_rows_in_memory(
    ds: LanceDataset, rows: pa.Table, filter: pl.Expr
) -> None:
    found = pl.scan_pyarrow_dataset(ds).filter(filter).collect()
    polars.testing.assert_frame_equal(found, _frame(rows).filter(filter))


def test_polars_reads_some_columns_of_some_rows(ds: LanceDataset, rows: pa.Table) -> None:
    lazy = pl.scan_pyarrow_dataset(ds).select("s", "a").slice(100, 5)
    expected = _frame(rows).select("s", "a").slice(100, 5)
    polars.testing.assert_frame_equal(lazy.collect(), expected)


def test_polars_counts_rows(ds: LanceDataset, rows: pa.Table) -> None:
    assert pl.scan_pyarrow_dataset(ds).select(pl.len()).collect().item() == rows.num_rows


def _frame(table: pa.Table) -> pl.DataFrame:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame


def test_pandas_frame_is_that_of_the_rows(ds: LanceDataset, rows: pa.Table) -> None:
    columns = ["a", "s", "ts", "b"]
    assert ds.to_pandas(columns).equals(rows.select(columns).to_pandas())


def test_pyarrow_writes_a_table_as_parquet(
    ds: LanceDataset, rows: pa.Table, tmp_path: Path
) -> None:
    reader = ds.scanner(columns=["a", "s"]).to_reader()
    pads.write_dataset(reader, tmp_path / "p", format="parquet")
    assert pads.dataset(tmp_path / "p").to_table() == rows.select(["a", "s"])


@pytest.mark.parametrize(
    "kwargs", [{}, {"columns": ["a"]}, {"filter": pc.field("a") > 390, "columns": ["a", "b"]}]
)
def test_stream_goes_through_the_c_interface(ds: LanceDataset, kwargs: dict[str, Any]) -> None:
    reader = ds.scanner(**kwargs).to_reader()
    assert pa.RecordBatchReader.from_stream(reader).read_all() == ds.to_table(**kwargs)
