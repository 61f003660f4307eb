"""Rarely drawn details compared with official releases: names, refs, pages."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake
from tests.support.column_gaps import gapped_table
from tests.support.compare import assert_same_table
from tests.support.official import Official
from tests.support.readers import LancelakeReader, OfficialReader, Reader, face

INNER = pa.struct(
    [
        pa.field("x", pa.int64(), nullable=False, metadata={"unit": "m"}),
        pa.field("Upper", pa.string()),
        pa.field("with space", pa.float64()),
    ]
)
SCHEMA = pa.schema(
    [
        pa.field("key", pa.int64(), nullable=False),
        pa.field("Camel", pa.int32()),
        pa.field("größe", pa.string()),
        pa.field("with space", pa.float64()),
        pa.field("select", pa.int8(), metadata={"note": "a keyword"}),
        pa.field("s", INNER, nullable=False),
    ],
    metadata={"owner": "tests"},
)
ROWS = pa.Table.from_pylist(
    [
        {
            "key": i,
            "Camel": i if i % 3 else None,
            "größe": "abcdef"[i] if i % 2 else None,
            "with space": i / 2,
            "select": i,
            "s": {"x": i * 10, "Upper": None if i == 4 else f"u{i}", "with space": -i / 4},
        }
        for i in range(6)
    ],
    schema=SCHEMA,
)


@pytest.fixture
def table(official: Official, tmp_table: str) -> str:
    """Return a table of two fragments with odd column names."""
    official.write(tmp_table, ROWS, data_storage_version="2.1", max_rows_per_file=4)
    return tmp_table


def ensure_same(official: Official, ask: Callable[[Reader], pa.Table]) -> None:
    """Compare the release's answer with ours: schema, order, values."""
    assert_same_table(ask(LancelakeReader()), ask(OfficialReader(official)))


@pytest.mark.parametrize(
    "columns",
    [
        ["größe"],
        ["`größe`"],
        ["with space", "key"],
        ["`with space`"],
        ["select"],
        ["s.x"],
        ["s.`with space`", "s.Upper"],
        ["s.x", "key", "s"],
        ["`s`.`Upper`"],
        ["_rowid", "s.x", "_rowaddr"],
        ["key", "_rowoffset"],
    ],
    ids=str,
)
def test_projection_by_name(official: Official, table: str, columns: list[str]) -> None:
    ensure_same(official, lambda reader: reader.read(table, 1, columns=columns))


@pytest.mark.parametrize(
    "expression",
    ["key", "Camel", "`with space`", "`größe`", "s", "Camel IS NULL", "Camel + 1"],
)
def test_projection_by_expression(official: Official, table: str, expression: str) -> None:
    columns = {"renamed": expression, "k": "key"}
    ensure_same(official, lambda reader: reader.read(table, 1, columns=columns))


METADATA_LOST = pytest.mark.xfail(reason="metadata of a column behind an expression is lost")


@pytest.mark.parametrize(
    "expression",
    [
        "key * 2",
        pytest.param("s.x", marks=METADATA_LOST),
        pytest.param("`select`", marks=METADATA_LOST),
    ],
)
def test_computed_columns_keep_what_is_known_about_them(
    official: Official, table: str, expression: str
) -> None:
    ensure_same(official, lambda reader: reader.read(table, 1, columns={"c": expression}))


@pytest.mark.parametrize(
    "where",
    [
        "Camel > 1",
        "camel > 1",
        "`größe` IS NULL",
        "größe = 'b'",
        "`with space` > 1.5",
        "s.x = 10",
        "s.Upper = 'u1'",
        "s.`with space` < -0.5",
        "key > 1 AND s.Upper IS NULL",
        "`select` IN (1, 3)",
        "key IN (1, 2) OR NOT (key < 5)",
        "größe LIKE 'a%' OR Camel BETWEEN 2 AND 4",
    ],
)
def test_filter_by_name(official: Official, table: str, where: str) -> None:
    ensure_same(official, lambda reader: reader.read(table, 1, filter=where))


KEYWORD_BEFORE_IS = pytest.param(
    "select IS NULL", marks=pytest.mark.xfail(reason="a keyword before IS is not taken as a name")
)


@pytest.mark.parametrize("where", ["select > 2", KEYWORD_BEFORE_IS, "key > 1 AND select < 4"])
def test_filter_by_a_keyword_without_quotes(official: Official, table: str, where: str) -> None:
    ensure_same(official, lambda reader: reader.read(table, 1, filter=where))


@pytest.mark.parametrize(
    "page",
    [
        {"limit": 0},
        {"limit": 3, "offset": 2},
        {"offset": 4},
        {"offset": 9},
        {"limit": 3, "order_by": [("größe", True, True), ("key", True, True)]},
        {"offset": 2, "order_by": [("größe", False, False), ("key", True, True)]},
        {"limit": 4, "order_by": [("Camel", False, True), ("key", False, False)]},
        {"filter": "key <> 2", "limit": 2, "offset": 1},
        {"filter": "key <> 2", "order_by": [("key", False, False)], "limit": 2},
    ],
    ids=str,
)
def test_pages(official: Official, table: str, page: dict[str, object]) -> None:
    ensure_same(official, lambda reader: reader.read(table, 1, **page))


@pytest.mark.parametrize(
    "columns",
    [["größe"], ["with space", "key"], ["s"], ["key", "_rowid", "key", "_rowid"]],
    ids=str,
)
def test_take_of_columns(official: Official, table: str, columns: list[str]) -> None:
    ensure_same(official, lambda reader: reader.take(table, 1, [0, 3, 5], columns))


@pytest.mark.parametrize(
    "columns", [["`größe`"], ["s.x"], ["s.Upper", "s.x"], ["s.`with space`", "key"]], ids=str
)
def test_take_of_paths_keeps_the_nesting(
    official: Official, table: str, columns: list[str]
) -> None:
    ensure_same(official, lambda reader: reader.take(table, 1, [0, 3, 5], columns))


def test_a_tag_opens_its_version(official: Official, table: str) -> None:
    official.tag(table, "first", 1)
    official.delete(table, "key < 3")
    ensure_same(official, lambda reader: reader.read(table, "first"))


def test_a_branch_reads_files_of_its_parent(official: Official, table: str) -> None:
    side = official.branch(table, "team/side")
    official.append(side, ROWS)
    official.delete(side, "key = 1")
    for version in official.info(side).versions:
        assert_same_table(LancelakeReader().read(side, version), official.read(side, version))
    dataset = face.dataset(table).checkout_version(("team/side", None))
    assert_same_table(dataset.to_table(), official.read(side))


def test_a_shallow_clone_reads_files_of_its_source(official: Official, table: str) -> None:
    clone = f"{table}-clone"
    official.delete(table, "key = 2")
    official.shallow_clone(table, clone, 2)
    official.delete(clone, "key = 3")
    official.append(clone, ROWS)
    for version in official.info(clone).versions:
        assert_same_table(LancelakeReader().read(clone, version), official.read(clone, version))


def test_asof_opens_the_newest_version_before_that_time(official: Official, table: str) -> None:
    official.append(table, ROWS)
    for entry in face.dataset(table).versions():
        later = entry["timestamp"] + timedelta(microseconds=1)
        assert face.dataset(table, asof=later).version == entry["version"]


@pytest.mark.parametrize("file_version", ["2.0", "2.1", "2.2"])
def test_members_of_packed_structs_are_what_was_written(
    official: Official, tmp_table: str, file_version: str
) -> None:
    """Official releases give garbage here, so the truth is what went in."""
    members = [pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.float32(), False)]
    marked = {"lance-encoding:packed": "true"}
    packed = pa.field("p", pa.struct(members), nullable=False, metadata=marked)
    values = [{"p": {"a": i, "b": i / 2}} for i in range(5)]
    rows = pa.Table.from_pylist(values, schema=pa.schema([packed]))
    official.write(tmp_table, rows, data_storage_version=file_version)
    found = face.dataset(tmp_table).to_table(columns=["p.b"])["p.b"]
    assert found.to_pylist() == [0.0, 0.5, 1.0, 1.5, 2.0]


@pytest.mark.parametrize("file_version", ["2.1", "2.2"])
def test_lists_of_only_null_items_keep_their_lengths(
    official: Official, tmp_table: str, file_version: str
) -> None:
    """Release 4.0.2 misreads these, whoever wrote them, so the truth is what went in."""
    lists = pa.array([[None], [], None, [None, None]], pa.list_(pa.int32()))
    rows = pa.table({"key": pa.array(range(4)), "l": lists})
    official.write(tmp_table, rows, data_storage_version=file_version)
    assert_same_table(face.dataset(tmp_table).to_table(), rows)


def test_fixed_size_lists_of_structs_are_read_beside_other_columns(
    official: Official, tmp_table: str
) -> None:
    """Release 14.0.2 refuses to read these two columns together."""
    item = pa.struct([("x", pa.int32()), ("y", pa.string())])
    lists = [[{"x": i, "y": "p"}, {"x": -i, "y": None}] for i in range(4)]
    rows = pa.table({"key": pa.array(range(4)), "f": pa.array(lists, pa.list_(item, 2))})
    official.write(tmp_table, rows, data_storage_version="2.2")
    assert_same_table(face.dataset(tmp_table).to_table(), rows)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_columns_of_files_with_more_columns_are_the_same(
    version: str, official: Official, tmp_path: Path
) -> None:
    gapped = gapped_table(tmp_path / "t.lance", version)
    expected = OfficialReader(official).read(str(gapped), 1)
    assert lancelake.dataset(gapped).to_table().equals(expected)
