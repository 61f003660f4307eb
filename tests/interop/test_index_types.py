"""Indices on columns of every type hold what official releases write."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lancelake.index.kinds import kind_named
from lancelake.index.order import keys_of
from lancelake.index.scalar.keyed_sets import FILE
from tests.strategies.index_values import TYPES, pool
from tests.support.official import Official
from tests.support.scalar_index_tables import IndexedTable, create_index

BUILD = """
ds = lance.dataset(uri)
for column in ds.schema.names:
    if column != "n":
        ds.create_scalar_index(column, kind)
"""
ASK = """
ds = lance.dataset(uri)
result = {}
for column in ds.schema.names:
    if column == "n":
        continue
    text = f"{column} IS NULL"
    found = ds.to_table(filter=text, columns=["n"])["n"].to_pylist()
    plan = ds.scanner(filter=text, columns=["n"]).explain_plan()
    result[column] = [found, "ScalarIndexQuery" in plan]
"""
COLUMNS = {f"c{number}": dtype for number, dtype in enumerate(TYPES)}
LENGTH = 20


def column_of(dtype: pa.DataType) -> pa.Array:
    some = [*pool(dtype), None]
    return pa.array([some[row % len(some)] for row in range(LENGTH)], dtype)


def write(official: Official, uri: str) -> None:
    columns = {name: column_of(dtype) for name, dtype in COLUMNS.items()}
    official.write(uri, pa.table({"n": range(LENGTH), **columns}), data_storage_version="2.1")


def content(uri: str, column: str, kind: str) -> list[object]:
    """Return keys and row ids, or sets, of the index of a column."""
    folder = IndexedTable(uri).facts(column).folder
    if kind == "BITMAP":
        table = folder.open(FILE).read()
        return [keys(table, "keys"), table.column("bitmaps").to_pylist()]
    pages = folder.open("page_data.lance").read()
    lookup = folder.open("page_lookup.lance").read()
    rows = sorted(zip(map(str, keys(pages, "values")), pages["ids"].to_pylist(), strict=True))
    bounds = [keys(lookup, name) for name in ("min", "max")]
    return [rows, keys(pages, "values"), *bounds, lookup["null_count"].to_pylist()]


def keys(table: pa.Table, name: str) -> list[object]:
    return keys_of(table.column(name).combine_chunks()).to_pylist()


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP"])
def test_files_hold_what_the_release_writes(
    official_14: Official, tmp_table: str, tmp_path, kind: str
) -> None:
    other = str(tmp_path / "other")
    for uri in (tmp_table, other):
        write(official_14, uri)
    official_14.run(tmp_table, BUILD, kind=kind)
    for column in COLUMNS:
        create_index(other, column, kind_named(kind))

    theirs = {column: content(tmp_table, column, kind) for column in COLUMNS}
    assert {column: content(other, column, kind) for column in COLUMNS} == theirs


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP"])
def test_a_release_uses_our_index_on_every_type(
    official: Official, tmp_table: str, kind: str
) -> None:
    write(official, tmp_table)
    for column in COLUMNS:
        create_index(tmp_table, column, kind_named(kind))

    nulls = {
        name: [[row for row in range(LENGTH) if not column_of(dtype)[row].is_valid], True]
        for name, dtype in COLUMNS.items()
    }
    assert official.run(tmp_table, ASK) == nulls


def test_labels_with_a_dictionary_are_found_by_a_release(
    official_14: Official, tmp_table: str
) -> None:
    dtype = pa.list_(pa.dictionary(pa.int32(), pa.string()))
    values = pa.array([["x", "y"], ["x"], None, [], ["z"]], dtype)
    official_14.write(tmp_table, pa.table({"n": range(5), "l": values}))
    create_index(tmp_table, "l", kind_named("LABEL_LIST"))

    code = """
ds = lance.dataset(uri)
text = "array_has(l, 'x')"
plan = ds.scanner(filter=text).explain_plan()
result = [ds.to_table(filter=text)["n"].to_pylist(), "ScalarIndexQuery" in plan]
"""
    assert official_14.run(tmp_table, code) == [[0, 1], True]
