"""Bounds of rows in pages since 2.1 are checked before the codec follows them."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lancelake.data.codec.file_ends import container_at, sound_end
from lancelake.data.codec.readers import open_reader
from lancelake.data.codec.row_bounds import UncheckedRows, unchecked_rows
from lancelake.errors import CorruptTableError
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt
from tests.support.data_files import written

ROWS = 600
AS_LONG = {"lance-encoding:structural-encoding": "fullzip"}


def long_values(name: str, values: list[object], dtype: pa.DataType) -> tuple[pa.Field, pa.Array]:
    """Return a column that is stored as columns of long values are."""
    return pa.field(name, dtype, metadata=AS_LONG), pa.array(values, dtype)


ITEM = pa.field("item", pa.string(), metadata=AS_LONG)
VECTOR = pa.field("item", pa.list_(pa.float32(), 4), metadata=AS_LONG)
# A row of so many items has its last ones checked one by one.
MANY = 100
BAD = 22
"""A row that is damaged."""
COLUMNS = [
    long_values("text", [f"text {n}" for n in range(ROWS)], pa.string()),
    long_values("large", [f"text {n}" for n in range(ROWS)], pa.large_string()),
    long_values("nulls", [None if n % 5 == 0 else f"text {n}" for n in range(ROWS)], pa.string()),
    long_values(
        "lists", [[f"{n}"] * (MANY if n == 7 else n % 4) for n in range(ROWS)], pa.list_(ITEM)
    ),
    long_values("vectors", [[[0.5] * 4] * (n % 3) for n in range(ROWS)], pa.list_(VECTOR)),
    (pa.field("chunks", pa.list_(pa.int32())), pa.array([[n] * (n % 3) for n in range(ROWS)])),
]
SCHEMA = pa.schema([field for field, _ in COLUMNS])
TABLE = pa.table([array for _, array in COLUMNS], schema=SCHEMA)
ZIPPED = [name for name in SCHEMA.names if name != "chunks"]


@pytest.fixture(scope="module", params=["2.1", "2.2"])
def original(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("original") / "x.lance", TABLE, request.param)


@pytest.fixture
def place(original: Path, tmp_path: Path) -> FileAt:
    """Return a file with all columns."""
    shutil.copy(original, tmp_path)
    return FileAt(root=Location.parse(tmp_path), path="x.lance")


def place_of(root: Path, table: pa.Table) -> FileAt:
    written(root / "x.lance", table, "2.1")
    return FileAt(root=Location.parse(root), path="x.lance")


def unchecked(place: FileAt, name: str, table: pa.Table = TABLE) -> UncheckedRows:
    end = sound_end(place)
    assert end is not None
    found = unchecked_rows(place, end, [table.schema.names.index(name)])
    assert found is not None
    return found


def buffers(place: FileAt, name: str, table: pa.Table = TABLE) -> list[tuple[int, int]]:
    """Return where the buffers of the first page of a column are, and how long."""
    page = container_at(place).column(table.schema.names.index(name)).pages[0]
    return list(zip(page.buffer_offsets, page.buffer_sizes, strict=True))


def change(place: FileAt, at: int, data: bytes) -> None:
    path = Path(place.root.uri) / place.path
    content = path.read_bytes()
    path.write_bytes(content[:at] + data + content[at + len(data) :])


def row_start(place: FileAt, name: str, row: int, table: pa.Table = TABLE) -> int:
    (data, _), (index, size) = buffers(place, name, table)[:2]
    width = size // (len(table) + 1)
    content = (Path(place.root.uri) / place.path).read_bytes()
    return data + int.from_bytes(content[index + row * width :][:width], "little")


def index_of_row(place: FileAt, name: str, row: int) -> int:
    _, (index, size) = buffers(place, name)[:2]
    return index + row * (size // (ROWS + 1))


def shift_an_offset(place: FileAt, name: str) -> None:
    change(place, index_of_row(place, name, BAD), b"\xff\xff")


def turn_offsets_around(place: FileAt, name: str) -> None:
    change(place, index_of_row(place, name, BAD), b"\0\0")


def change_the_levels(place: FileAt, name: str) -> None:
    change(place, row_start(place, name, BAD), b"\x7f")


def change_a_length(place: FileAt, name: str) -> None:
    # Without levels the row begins with the length of its value.
    before = 0 if name in {"text", "large"} else 1
    change(place, row_start(place, name, BAD) + before, b"\xff\xff\xff\xff")


DAMAGE: dict[str, tuple[Callable[[FileAt, str], None], list[str]]] = {
    "an offset is too large": (shift_an_offset, ZIPPED),
    "offsets are not in order": (turn_offsets_around, ZIPPED),
    "levels": (change_the_levels, ["nulls", "lists", "vectors"]),
    "a length": (change_a_length, ["text", "large", "nulls", "lists"]),
}
CASES = [(damage, name) for damage, (_, names) in DAMAGE.items() for name in names]


@pytest.mark.parametrize("rows", [range(ROWS), range(19, 23), [3, 20, 22, 23], [BAD]])
@pytest.mark.parametrize(("damage", "name"), CASES)
def test_bounds_that_contradict_each_other_are_reported(
    place: FileAt, damage: str, name: str, rows: range | list[int]
) -> None:
    DAMAGE[damage][0](place, name)
    with pytest.raises(CorruptTableError, match="the lengths of its values contradict each other"):
        unchecked(place, name).check(rows)


@pytest.mark.parametrize("number", [0, 1 << 40])
def test_chunks_of_other_rows_are_reported(place: FileAt, number: int) -> None:
    at, _ = buffers(place, "chunks")[-1]
    change(place, at, number.to_bytes(8, "little"))
    with pytest.raises(CorruptTableError, match="the chunks of a page have other rows"):
        unchecked(place, "chunks").check([3])


def test_chunks_outside_of_their_page_are_reported(place: FileAt) -> None:
    at, size = buffers(place, "chunks")[0]
    change(place, at, b"\xff" * size)
    with pytest.raises(CorruptTableError, match="a chunk is outside of its page"):
        unchecked(place, "chunks").check(range(ROWS))


@pytest.mark.parametrize("name", SCHEMA.names)
def test_a_file_in_order_is_read(place: FileAt, name: str) -> None:
    reader = open_reader(place, (name,))
    (some,) = reader.take_rows([3, 7, 20], readahead=1)
    assert some.column(0).equals(TABLE[name].combine_chunks().take(pa.array([3, 7, 20])))
    every = pa.Table.from_batches(reader.read_range(0, ROWS, batch_rows=99, readahead=1))
    assert every[name].combine_chunks().equals(TABLE[name].combine_chunks())
    assert isinstance(reader._unchecked, UncheckedRows)
    assert reader._unchecked._pages == []


def test_other_columns_are_still_read(place: FileAt) -> None:
    turn_offsets_around(place, "text")
    reader = open_reader(place, ("nulls",))
    assert sum(b.num_rows for b in reader.read_range(0, ROWS, batch_rows=ROWS, readahead=1)) == ROWS


@pytest.mark.parametrize("bytes_of_row", [3_000, 20_000])
def test_other_rows_of_a_large_page_are_still_read(tmp_path: Path, bytes_of_row: int) -> None:
    values = [random.Random(n).randbytes(bytes_of_row) for n in range(400)]
    array = pa.array(values, pa.large_binary())
    field = pa.field("value", pa.large_binary(), metadata=AS_LONG)
    table = pa.table([array], schema=pa.schema([field]))
    place = place_of(tmp_path, table)
    first = unchecked(place, "value", table)
    first.check(range(400))
    assert first._pages == []
    change(place, row_start(place, "value", 350, table), b"\0")
    found = unchecked(place, "value", table)
    found.check([3, 349, 351])
    found.check(range(100, 300))
    for rows in ([350], range(310, 400)):
        with pytest.raises(CorruptTableError, match="lengths of its values"):
            found.check(rows)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_a_page_with_fewer_values_than_rows_is_reported(tmp_path: Path, version: str) -> None:
    path = written(tmp_path / "x.lance", pa.table({"id": range(ROWS)}), version)
    content = path.read_bytes()
    # The number of values is before the last field of a layout: 600, as it is encoded.
    at = content.index(b"H\xd8\x04")
    path.write_bytes(content[: at + 1] + b"\xd4" + content[at + 2 :])
    with pytest.raises(CorruptTableError, match="a page has fewer values than rows"):
        open_reader(FileAt(root=Location.parse(tmp_path), path="x.lance"), ("id",))


def test_columns_without_bounds_have_none(tmp_path: Path) -> None:
    place = place_of(tmp_path, pa.table({"id": range(ROWS)}))
    assert open_reader(place, ("id",))._unchecked is None
