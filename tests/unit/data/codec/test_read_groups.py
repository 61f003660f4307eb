"""Columns that the codec reads correctly, alone and beside others."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lancelake.data.codec.lance_file import read_groups
from lancelake.data.codec.transplant import Graft, Transplant, transplant
from lancelake.errors import UnsupportedError
from tests.support.data_files import FILES, DataFileOnDisk, structs, written

NUMBERS = pa.array(range(6), pa.int64())
PAIRS = structs(
    [None if n == 4 else {"x": n, "y": f"y{n}"} for n in range(6)], x=pa.int32(), y=pa.string()
)
BLOB = {"lance-encoding:blob": "true"}


def opened(tmp_path: Path, version: str, schema: pa.Schema, *arrays: pa.Array) -> DataFileOnDisk:
    table = pa.Table.from_arrays(list(arrays), schema=schema)
    return DataFileOnDisk.open(written(tmp_path / "f.lance", table, version), tmp_path)


def shared(name: str, tmp_path: Path) -> DataFileOnDisk:
    return DataFileOnDisk.open(FILES / f"{name}.lance", tmp_path)


def projections(file: DataFileOnDisk, *paths: str) -> list[tuple[str, ...] | None]:
    """Say for each group what the codec is asked for; None for a transplant."""
    groups = file.groups(*paths)
    return [group.projection if group.transplant is None else None for group in groups]


def test_plain_columns_are_read_together_in_the_order_asked(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.int64()), ("s", PAIRS.type)])
    file = opened(tmp_path, "2.1", schema, NUMBERS, PAIRS)
    assert projections(file, "s.y", "a", "s.x") == [("`s`.`y`", "`a`", "`s`.`x`")]


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_a_packed_struct_is_read_as_a_whole(tmp_path: Path, version: str) -> None:
    file = shared(f"packed-4.0.2-{version}", tmp_path)
    assert projections(file) == [("`i`", "`p`", "`s`")]
    assert file.values()["p"] == [{"x": n, "y": n / 2} for n in range(8)]


def test_columns_before_a_blob_v2_are_read_in_place_and_all_others_moved(tmp_path: Path) -> None:
    file = shared("blob_v2-4.0.2-2.2", tmp_path)
    assert projections(file) == [("`i`",), None]


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_blobs_v1_are_moved_for_their_positions(tmp_path: Path, version: str) -> None:
    file = shared(f"blob_v1-4.0.2-{version}", tmp_path)
    assert projections(file) == [("`i`", "`s`"), None]


def test_a_map_comes_with_all_its_columns(tmp_path: Path) -> None:
    maps = pa.array([[("k", n)] for n in range(6)], pa.map_(pa.string(), pa.int32()))
    file = opened(tmp_path, "2.2", pa.schema([("m", maps.type)]), maps)
    (group,) = file.groups("m.entries.value")
    assert group.projection == ("`m`",)
    assert [column.index for column in group.columns] == [0, 1]
    assert file.values("m.entries.value")["m"] == maps.to_pylist()


def test_fixed_size_lists_of_structs_are_read_alone(tmp_path: Path) -> None:
    lists = pa.array(
        [None if n == 2 else [{"x": n, "y": "a"}, {"x": n, "y": None}] for n in range(6)],
        pa.list_(PAIRS.type, 2),
    )
    schema = pa.schema([("a", pa.int64()), ("f", lists.type), ("b", pa.int64())])
    file = opened(tmp_path, "2.2", schema, NUMBERS, lists, NUMBERS)
    assert projections(file) == [("`a`", "`b`"), ("`f`",)]
    assert file.values()["f"] == lists.to_pylist()


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_empty_structs_are_read_alone_since_21(tmp_path: Path, version: str) -> None:
    empty = pa.array([{}] * 6, pa.struct([]))
    schema = pa.schema([("a", pa.int64()), ("e", empty.type), ("b", pa.int64())])
    file = opened(tmp_path, version, schema, NUMBERS, empty, NUMBERS)
    assert projections(file) == [("`a`", "`b`"), ("`e`",)]
    assert file.values() == {"a": [*range(6)], "b": [*range(6)], "e": [{}] * 6}


def test_empty_structs_of_20_files_are_read_with_others(tmp_path: Path) -> None:
    empty = pa.array([{}] * 6, pa.struct([]))
    schema = pa.schema([("e", empty.type), ("b", pa.int64())])
    file = opened(tmp_path, "2.0", schema, empty, NUMBERS)
    assert projections(file) == [("`e`", "`b`")]


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_a_column_without_a_name_is_moved(tmp_path: Path, version: str) -> None:
    schema = pa.schema([("", pa.int64()), ("b", pa.int64())])
    file = opened(tmp_path, version, schema, NUMBERS, NUMBERS)
    assert projections(file) == [None, ("`b`",)]
    assert file.values("")[""] == [*range(6)]


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_members_that_share_a_name_are_moved(tmp_path: Path, version: str) -> None:
    pair = pa.StructArray.from_arrays([NUMBERS, pa.array(list("abcdef"))], ["x", "x"])
    file = opened(tmp_path, version, pa.schema([("s", pair.type)]), pair)
    (group,) = file.groups()
    assert group.transplant is not None
    (batch,) = file.reader(group).read_all().to_table().to_batches()
    assert batch.column(0).field(1).to_pylist() == list("abcdef")


def test_json_text_of_20_files_is_read_in_place(tmp_path: Path) -> None:
    file = shared("json_text-4.0.2-2.0", tmp_path)
    assert projections(file) == [("`st`.`x`", "`st`.`j`")]


def test_json_text_with_short_offsets_is_moved_and_read_as_string(tmp_path: Path) -> None:
    file = shared("json_text-4.0.2-2.1", tmp_path)
    assert projections(file) == [("`st`.`x`",), None]
    (table,) = file.tables("st.j")
    assert table["st"].type == pa.struct([("j", pa.string())])
    texts = [None if n == 2 else f'{{"k": {n}}}' for n in range(8)]
    assert table["st"].to_pylist() == [{"j": text} for text in texts]


def test_json_text_with_long_offsets_is_read_in_place(tmp_path: Path) -> None:
    texts = pa.array(["1", None, "{}"], pa.large_string())
    file = as_json_text(written(tmp_path / "f.lance", pa.table({"j": texts}), "2.1"), tmp_path)
    assert projections(file) == [("`j`",)]
    assert file.values()["j"] == [b"1", None, b"{}"]


def as_json_text(path: Path, tmp_path: Path) -> DataFileOnDisk:
    """Rewrite the schema of a file of one large string the way pylance 4 writes nested JSON."""
    file = DataFileOnDisk.open(path, tmp_path)
    schema = file.container.descriptor().schema
    schema.fields[0].logical_type = "json"
    schema.fields[0].metadata["ARROW:extension:name"] = b"arrow.json"
    target = tmp_path / "json.lance"
    transplant(file.container, Transplant(grafts=(Graft(index=0),), schema=schema), target)
    return DataFileOnDisk.open(target, tmp_path)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_blobs_inside_lists_are_refused_since_21(tmp_path: Path, version: str) -> None:
    lists = pa.list_(pa.field("item", pa.large_binary(), metadata=BLOB))
    file = opened(tmp_path, version, pa.schema([("l", lists)]), pa.array([[b"a"]], lists))
    with pytest.raises(UnsupportedError):
        file.groups()


def test_parents_of_20_files_bring_nothing_of_their_own(tmp_path: Path) -> None:
    file = opened(tmp_path, "2.0", pa.schema([("s", PAIRS.slice(0, 4).type)]), PAIRS.slice(0, 4))
    parent = file.layout.columns[0]
    assert parent.path == ("s",)
    assert read_groups(file.layout, file.container, [parent.index]) == ()
