"""The numbers of columns, for every shape and version."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from lance.file import LanceFileReader

from lancelake.data.codec import file_layout
from lancelake.data.codec.file_layout import ColumnKind, FileLayout, open_container
from lancelake.errors import CorruptTableError
from lancelake.format.schema import quoted_path
from tests.support.data_files import FILES, DataFileOnDisk, written
from tests.support.legacy_tables import MemorySource

PAIR = pa.struct([("x", pa.int32()), ("y", pa.string())])
FIXED = pa.struct([("x", pa.int32()), ("y", pa.int64())])
PACKED = {"lance-encoding:packed": "true"}


def layout_of(path: Path) -> FileLayout:
    container = open_container(MemorySource(path.read_bytes()))
    return file_layout.decode(
        container.descriptor(), container.version, num_columns=container.num_columns
    )


def paths(layout: FileLayout) -> list[str]:
    return [".".join(column.path) for column in layout.columns]


def kinds(layout: FileLayout) -> dict[str, ColumnKind]:
    return {".".join(column.path): column.kind for column in layout.columns}


def empty_file(tmp_path: Path, version: str, *fields: pa.Field) -> FileLayout:
    return layout_of(written(tmp_path / "f.lance", pa.schema(fields).empty_table(), version))


SHAPES = [
    (pa.field("c", PAIR), ["c", "c.x", "c.y"], ["c.x", "c.y"]),
    (pa.field("c", pa.list_(pa.int32())), ["c", "c.item"], ["c.item"]),
    (
        pa.field("c", pa.large_list(PAIR)),
        ["c", "c.item", "c.item.x", "c.item.y"],
        ["c.item.x", "c.item.y"],
    ),
    (
        pa.field("c", pa.list_(pa.list_(pa.int32()))),
        ["c", "c.item", "c.item.item"],
        ["c.item.item"],
    ),
    (pa.field("c", pa.list_(pa.list_(pa.float32(), 2), 3)), ["c"], ["c"]),
    (pa.field("c", pa.dictionary(pa.int8(), pa.string())), ["c"], ["c"]),
    (pa.field("c", FIXED, metadata=PACKED), ["c"], ["c"]),
    (pa.field("c", pa.struct([])), ["c"], ["c"]),
    (pa.field("c", pa.null()), ["c"], ["c"]),
    (
        pa.field("c", pa.struct([("p", PAIR), ("q", pa.int8())])),
        ["c", "c.p", "c.p.x", "c.p.y", "c.q"],
        ["c.p.x", "c.p.y", "c.q"],
    ),
]


@pytest.mark.parametrize(("field", "nodes"), [(f, nodes) for f, nodes, _ in SHAPES])
def test_in_20_files_every_node_has_a_column(
    tmp_path: Path, field: pa.Field, nodes: list[str]
) -> None:
    layout = empty_file(tmp_path, "2.0", pa.field("first", pa.int8()), field)
    assert paths(layout) == ["first", *nodes]


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize(("field", "leaves"), [(f, leaves) for f, _, leaves in SHAPES])
def test_later_files_have_columns_for_leaves(
    tmp_path: Path, field: pa.Field, leaves: list[str], version: str
) -> None:
    layout = empty_file(tmp_path, version, pa.field("first", pa.int8()), field)
    assert paths(layout) == ["first", *leaves]


@pytest.mark.parametrize(
    ("field", "leaves"),
    [
        (
            pa.field("c", pa.map_(pa.string(), PAIR)),
            ["c.entries.key", "c.entries.value.x", "c.entries.value.y"],
        ),
        (pa.field("c", pa.list_(PAIR, 2)), ["c.item.x", "c.item.y"]),
    ],
)
def test_shapes_of_22_have_columns_for_leaves(
    tmp_path: Path, field: pa.Field, leaves: list[str]
) -> None:
    assert paths(empty_file(tmp_path, "2.2", field)) == leaves


def test_members_of_a_blob_descriptor_are_children_of_the_blob() -> None:
    layout = layout_of(FILES / "blob_v2-4.0.2-2.2.lance")
    assert paths(layout) == ["i", "b", "s", "st.x", "st.y"]
    members = [child.name for child in layout.columns[1].field.children]
    assert members == ["kind", "position", "size", "blob_id", "blob_uri"]


def test_each_column_knows_its_top_level_field() -> None:
    layout = layout_of(FILES / "blob_v2-4.0.2-2.2.lance")
    assert [column.top for column in layout.columns] == [0, 1, 2, 3, 3]


@pytest.mark.parametrize(
    ("name", "path", "kind"),
    [
        ("blob_v2-4.0.2-2.2", "b", ColumnKind.BLOB_V2),
        ("blob_v2-4.0.2-2.2", "st.x", ColumnKind.VALUES),
        ("blob_v1-4.0.2-2.0", "b", ColumnKind.BLOB_V1),
        ("blob_v1-4.0.2-2.1", "b", ColumnKind.BLOB_V1),
        ("packed-4.0.2-2.0", "p", ColumnKind.PACKED_STRUCT),
        ("json_text-4.0.2-2.0", "st", ColumnKind.PARENT),
        ("json_text-4.0.2-2.1", "st.j", ColumnKind.JSON_TEXT),
    ],
)
def test_kinds_are_distinguished(name: str, path: str, kind: ColumnKind) -> None:
    assert kinds(layout_of(FILES / f"{name}.lance"))[path] is kind


def test_json_in_binary_form_is_a_plain_column(tmp_path: Path) -> None:
    layout = empty_file(tmp_path, "2.1", pa.field("j", pa.json_()))
    assert kinds(layout) == {"j": ColumnKind.VALUES}


def test_an_empty_struct_is_distinguished(tmp_path: Path) -> None:
    layout = empty_file(tmp_path, "2.1", pa.field("e", pa.struct([])))
    assert kinds(layout) == {"e": ColumnKind.EMPTY_STRUCT}


def test_a_wrong_number_of_columns_is_corrupt() -> None:
    container = open_container(MemorySource((FILES / "packed-4.0.2-2.1.lance").read_bytes()))
    with pytest.raises(CorruptTableError):
        file_layout.decode(container.descriptor(), container.version, num_columns=4)


NAMES = ["a", "A", "a.b", "c d", "e`f", "`", "``", ".", '"q"', "it's", "é", "1", "*", "\\", " x"]


@pytest.mark.parametrize("name", NAMES)
def test_the_codec_finds_any_name_by_its_quoted_path(tmp_path: Path, name: str) -> None:
    numbers = [pa.array([k], pa.int32()) for k in range(len(NAMES))]
    struct = pa.StructArray.from_arrays(numbers, NAMES)
    path = written(tmp_path / "names.lance", pa.table({"s t": struct}), "2.1")
    reader = LanceFileReader(str(path), columns=[quoted_path(("s t", name))])
    assert reader.read_all().to_table()["s t"].to_pylist() == [{name: NAMES.index(name)}]


def test_values_below_lists_are_distinguished(tmp_path: Path) -> None:
    table = pa.table({"l": pa.array([[{"x": 1}]]), "s": pa.array([{"x": 1}])})
    file = DataFileOnDisk.open(written(tmp_path / "f.lance", table, "2.1"), tmp_path)
    assert [column.is_below_list for column in file.layout.columns] == [True, False]
