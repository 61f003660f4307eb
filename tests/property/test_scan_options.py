"""Combined scan options compared with a model in plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

import lancelake.pylance as lance
from lancelake.pylance import ColumnOrdering, LanceDataset
from tests.support.compare import assert_same_table
from tests.support.read_tables import Varied, varied

Row = dict[str, Any]
FILTERS: dict[str, Callable[[Row], bool]] = {
    "key >= 0": lambda r: True,
    "key < 0": lambda r: False,
    "key % 3 = 0": lambda r: r["key"] % 3 == 0,
    "a IS NULL OR a > 3": lambda r: r["a"] is None or r["a"] > 3,
    "st IS NULL": lambda r: r["st"] is None,
    "st.x > 10 AND n IS NOT NULL": lambda r: (
        _x(r) is not None and _x(r) > 10 and r["n"] is not None
    ),
    "n IS NULL": lambda r: r["n"] is None,
    "z IS NULL": lambda r: True,
    "_rowid > 4294967298": lambda r: r["_rowid"] > 4294967298,
    "_rowaddr % 2 = 0 AND key < 25": lambda r: r["_rowaddr"] % 2 == 0 and r["key"] < 25,
}
SORT_KEYS = ("a", "text", "n")
NAMES = (
    "key",
    "a",
    "text",
    "st",
    "st.x",
    "st.y",
    "f",
    "n",
    "z",
    "_rowid",
    "_rowaddr",
    "_rowoffset",
)
FRAGMENTS = 5


@pytest.fixture(scope="module", params=[False, True], ids=["addresses", "stable ids"])
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[LanceDataset, pa.Table]:
    """Return a table, and all that can be asked of its rows."""
    path = tmp_path_factory.mktemp("options") / "t.lance"
    table = varied(path, stable_row_ids=request.param)
    return lance.dataset(path), _model(table, stable=request.param)


@st.composite
def scans(draw: DrawFn) -> dict[str, Any]:
    """Draw options of a scan."""
    some = st.sampled_from
    names = draw(st.none() | st.lists(some(NAMES), unique=True, max_size=5))
    keys = draw(st.lists(st.tuples(some(SORT_KEYS), st.booleans(), st.booleans()), max_size=2))
    options = {
        "columns": names,
        "filter": draw(st.none() | some(list(FILTERS))),
        "limit": draw(st.none() | some([0, 1, 2, 7, 8, 15, 1000])),
        "offset": draw(st.none() | some([0, 1, 2, 7, 8, 15, 1000])),
        "order_by": [*keys, ("key", True, False)] if keys else None,
        "batch_size": draw(st.none() | some([1, 2, 3, 7, 1000, 1 << 20])),
        "late_materialization": draw(st.none() | some([True, False, ["text"], ["key", "n"]])),
        "fragment_readahead": draw(st.none() | some([1, 2, 8])),
        "strict_batch_size": draw(st.none() | st.booleans()),
        "with_row_id": draw(st.none() | st.booleans()),
        "with_row_address": draw(st.none() | st.booleans()),
        "fragments": draw(st.none() | st.lists(st.integers(0, FRAGMENTS - 1), unique=True)),
    }
    return {name: value for name, value in options.items() if value is not None}


@given(options=scans())
def test_scan_gives_what_the_model_gives(
    both: tuple[LanceDataset, pa.Table], options: dict[str, Any]
) -> None:
    ds, model = both
    found = ds.scanner(**_asked(ds, options)).to_table()
    assert_same_table(found, _expected(model, options))


@given(options=scans())
def test_batches_have_the_size_asked_for(
    both: tuple[LanceDataset, pa.Table], options: dict[str, Any]
) -> None:
    ds, model = both
    size = options.setdefault("batch_size", 3)
    sizes = [batch.num_rows for batch in ds.scanner(**_asked(ds, options)).to_batches()]
    rows = _expected(model, options).num_rows
    assert sum(sizes) == rows
    if options.get("strict_batch_size"):
        assert sizes[:-1] == [size] * (len(sizes) - 1)
    if "order_by" not in options:
        assert max(sizes, default=0) <= size


@given(options=scans())
def test_rows_are_counted_as_they_are_read(
    both: tuple[LanceDataset, pa.Table], options: dict[str, Any]
) -> None:
    ds, model = both
    assert ds.scanner(**_asked(ds, options)).count_rows() == _expected(model, options).num_rows


def _asked(ds: LanceDataset, options: dict[str, Any]) -> dict[str, Any]:
    asked = dict(options)
    if "order_by" in asked:
        asked["order_by"] = [ColumnOrdering(*key) for key in asked["order_by"]]
    if "fragments" in asked:
        asked["fragments"] = [ds.get_fragment(i) for i in asked["fragments"]]
    return asked


def _model(table: Varied, *, stable: bool) -> pa.Table:
    """Return the rows with every column that can be asked for, and their fragment."""
    keys = table.keys
    places = [(key // 10, key % 10) if key < 30 else (3, key - 30) for key in keys[:-1]]
    places.append((4, 0))
    addresses = [(fragment << 32) + offset for fragment, offset in places]
    model = table.rows
    for member in ("x", "y"):
        values = pa.chunked_array([pa.compute.struct_field(model["st"].combine_chunks(), member)])
        model = model.append_column(f"st.{member}", values)
    metas = {"_rowid": keys if stable else addresses, "_rowaddr": addresses}
    metas["_rowoffset"] = list(range(len(keys)))
    for name, numbers in metas.items():
        model = model.append_column(name, pa.array(numbers, pa.uint64()))
    return model.append_column("fragment", pa.array([fragment for fragment, _ in places]))


def _expected(model: pa.Table, options: dict[str, Any]) -> pa.Table:
    rows: list[tuple[int, Row]] = list(enumerate(model.to_pylist()))
    if "fragments" in options:
        chosen = options["fragments"]
        rows = [row for i in chosen for row in rows if row[1]["fragment"] == i]
    if "filter" in options:
        rows = [row for row in rows if FILTERS[options["filter"]](row[1])]
    for name, ascending, nulls_first in reversed(options.get("order_by", [])):
        present = [row for row in rows if row[1][name] is not None]
        absent = [row for row in rows if row[1][name] is None]
        present.sort(key=lambda row, name=name: row[1][name], reverse=not ascending)
        rows = absent + present if nulls_first else present + absent
    start = options.get("offset", 0)
    stop = start + options["limit"] if "limit" in options else None
    numbers = pa.array([number for number, _ in rows[start:stop]], pa.int64())
    return model.take(numbers).select(_names(options))


def _names(options: dict[str, Any]) -> list[str]:
    names = options.get("columns", ["key", "a", "text", "st", "f", "n", "z"])
    flags = {"_rowid": "with_row_id", "_rowaddr": "with_row_address"}
    last = [name for name, flag in flags.items() if options.get(flag)]
    return [name for name in names if name not in last] + last


def _x(row: Row) -> int | None:
    return None if row["st"] is None else row["st"]["x"]
