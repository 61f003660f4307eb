"""Columns in a file of their own: the same values, the same rows, few bytes."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import lance
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lance.file import LanceFileReader

from lancelake.data.codec import file_layout
from lancelake.data.codec.file_layout import ColumnKind, Container, open_container
from lancelake.data.codec.transplant import Transplant, plan_transplant, transplant, windows
from lancelake.data.column_reader import positions_with_nulls
from lancelake.errors import CorruptTableError
from tests.support.data_files import FILES, DataFileOnDisk, official_table, structs, written
from tests.support.legacy_tables import MemorySource

ROWS = 6000


def descriptor(position: int, size: int) -> dict[str, object]:
    return {"kind": 0, "position": position, "size": size, "blob_id": 0, "blob_uri": ""}


def test_a_blob_v2_of_pylance_4_and_what_follows_it_are_read(tmp_path: Path) -> None:
    file = DataFileOnDisk.open(FILES / "blob_v2-4.0.2-2.2.lance", tmp_path)
    values = file.values()
    # This release keeps no nulls: official readers show them as descriptors of nothing.
    nothing = descriptor(0, 0)
    assert values["b"] == [
        descriptor(0, 3),
        nothing,
        descriptor(64, 0),
        descriptor(64, 100),
        nothing,
        descriptor(192, 1),
        descriptor(256, 0),
        descriptor(256, 70),
    ]
    assert values["s"] == [None if n == 3 else f"s{n}" for n in range(8)]
    assert values["st"] == [None if n == 5 else {"x": n, "y": f"y{n}"} for n in range(8)]


def blob_table() -> pa.Table:
    blobs = [None if n % 7 == 0 else b"b" * (n % 5) for n in range(300)]
    blobs[3] = b"b" * 100_000
    pairs = structs(
        [None if n % 9 == 0 else {"x": n, "y": f"y{n}"} for n in range(300)],
        x=pa.int32(),
        y=pa.string(),
    )
    maps = pa.array([[("k", n)] * (n % 3) for n in range(300)], pa.map_(pa.string(), pa.int32()))
    lists = pa.array([None if n % 4 == 0 else [{"x": n}] * (n % 3) for n in range(300)])
    columns = {
        "i": (pa.field("i", pa.int64()), pa.array(range(300), pa.int64())),
        "b": (lance.blob_field("b"), lance.blob_array(blobs)),
        "l": (pa.field("l", lists.type), lists),
        "p": (pa.field("p", pairs.type, metadata={"lance-encoding:packed": "true"}), pairs),
        "m": (pa.field("m", maps.type), maps),
        "c": (lance.blob_field("c"), lance.blob_array(blobs)),
        "t": (pa.field("t", pairs.type), pairs),
    }
    arrays = [array for _, array in columns.values()]
    return pa.table(arrays, schema=pa.schema([field for field, _ in columns.values()]))


def test_everything_behind_a_blob_v2_is_read_as_the_official_library_does(tmp_path: Path) -> None:
    path, expected = official_table(tmp_path / "t", blob_table(), "2.2")
    file = DataFileOnDisk.open(path, tmp_path)
    assert file.values() == {name: expected[name].to_pylist() for name in expected.schema.names}


def test_a_blob_v2_inside_a_struct_is_read_as_the_official_library_does(tmp_path: Path) -> None:
    fields = [pa.field("x", pa.int32()), lance.blob_field("b")]
    blobs = lance.blob_array([None if n % 3 == 0 else b"b" * n for n in range(40)])
    array = pa.StructArray.from_arrays([pa.array(range(40), pa.int32()), blobs], fields=fields)
    table = pa.table([array], schema=pa.schema([pa.field("s", array.type)]))
    path, expected = official_table(tmp_path / "t", table, "2.2")
    file = DataFileOnDisk.open(path, tmp_path)
    (moved,) = file.tables("s.b")
    assert [row["b"] for row in moved["s"].to_pylist()] == [
        row["b"] for row in expected["s"].to_pylist()
    ]


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_positions_of_blobs_v1_are_those_of_the_official_library(
    tmp_path: Path, version: str
) -> None:
    blobs = [None if n % 3 == 0 else b"b" * (n % 5) for n in range(200)]
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    table = pa.table([pa.array(blobs, pa.large_binary())], schema=pa.schema([field]))
    path, expected = official_table(tmp_path / "t", table, version)
    file = DataFileOnDisk.open(path, tmp_path)
    (moved,) = file.tables()
    array = positions_with_nulls(moved["b"].combine_chunks(), file.layout.version)
    assert array.to_pylist() == expected["b"].to_pylist()
    assert array.type == expected["b"].type


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_positions_of_blobs_v1_of_pylance_4_are_read(tmp_path: Path, version: str) -> None:
    file = DataFileOnDisk.open(FILES / f"blob_v1-4.0.2-{version}.lance", tmp_path)
    (moved,) = file.tables("b")
    array = positions_with_nulls(moved["b"].combine_chunks(), file.layout.version)
    null = {"position": 1, "size": 0} if version == "2.0" else None
    sizes = [None if value is None else value["size"] for value in array.to_pylist()]
    assert sizes == [3, null and 0, 0, 100, null and 0, 1, 0, 70]
    assert array.to_pylist()[1] == null


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_blobs_v1_without_a_value_have_positions(tmp_path: Path, version: str) -> None:
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    table = pa.table([pa.nulls(20, pa.large_binary())], schema=pa.schema([field]))
    path, expected = official_table(tmp_path / "t", table, version)
    file = DataFileOnDisk.open(path, tmp_path)
    (moved,) = file.tables()
    array = positions_with_nulls(moved["b"].combine_chunks(), file.layout.version)
    assert array.to_pylist() == expected["b"].to_pylist()


def many_pages(*, null_structs: bool = True) -> pa.Table:
    pairs = structs(
        [
            None if null_structs and n % 11 == 0 else {"x": n, "y": "y" * (n % 9)}
            for n in range(ROWS)
        ],
        x=pa.int32(),
        y=pa.string(),
    )
    vectors = pa.FixedSizeListArray.from_arrays(
        pa.array([float(n % 977) for n in range(ROWS * 16)], pa.float32()), 16
    )
    return pa.table(
        {
            "i": pa.array(range(ROWS), pa.int64()),
            "v": vectors,
            "t": pairs,
            "l": pa.array([None if n % 7 == 0 else [f"e{n}"] * (n % 5) for n in range(ROWS)]),
        }
    )


@cache
def paged(version: str) -> tuple[Container, Transplant, pa.Table]:
    # Files of 2.0 cannot hold null structs.
    table = many_pages(null_structs=version != "2.0")
    with TemporaryDirectory() as folder:
        path = written(Path(folder) / "f.lance", table, version, page_bytes=16 * 1024)
        data = path.read_bytes()
    container = open_container(MemorySource(data))
    layout = file_layout.decode(container.descriptor(), container.version)
    values = [c for c in layout.columns if c.kind is not ColumnKind.PARENT]
    return container, plan_transplant(layout, values), table


stretches = st.tuples(st.integers(0, ROWS - 1), st.integers(1, 2000)).map(
    lambda pair: range(pair[0], min(ROWS, pair[0] + pair[1]))
)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@given(rows=stretches)
@settings(max_examples=15, deadline=None)
def test_the_rows_that_were_asked_for_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, version: str, rows: range
) -> None:
    container, plan, table = paged(version)
    target = tmp_path_factory.mktemp("t") / "x.lance"
    transplant(container, plan, target, rows=rows)
    reader = LanceFileReader(str(target))
    assert reader.num_rows() == ROWS
    found = reader.read_range(rows.start, len(rows)).to_table()
    assert found.to_pylist() == table.slice(rows.start, len(rows)).to_pylist()
    some = list(rows)[::7]
    assert reader.take_rows(some).to_table().to_pylist() == table.take(some).to_pylist()


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_other_rows_cannot_be_read(tmp_path: Path, version: str) -> None:
    container, plan, _ = paged(version)
    transplant(container, plan, tmp_path / "x.lance", rows=range(10))
    reader = LanceFileReader(str(tmp_path / "x.lance"))
    with pytest.raises((OSError, pa.ArrowException)):
        reader.read_all().to_table()


def test_few_rows_cost_few_bytes(tmp_path: Path) -> None:
    container, plan, _ = paged("2.1")
    source = container.source
    assert isinstance(source, MemorySource)
    source.reads.clear()
    transplant(container, plan, tmp_path / "x.lance", rows=range(3000, 3010))
    assert source.bytes_read < len(source.data) / 10


def test_adjacent_buffers_are_read_together(tmp_path: Path) -> None:
    container, plan, _ = paged("2.1")
    source = container.source
    assert isinstance(source, MemorySource)
    pages = sum(len(container.column(graft.index).pages) for graft in plan.grafts)
    source.reads.clear()
    transplant(container, plan, tmp_path / "x.lance")
    assert len(source.reads) <= pages


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@given(rows=stretches, max_bytes=st.integers(1, 400_000))
def test_windows_cover_the_rows_without_overlap(version: str, rows: range, max_bytes: int) -> None:
    container, plan, _ = paged(version)
    parts = list(windows(container, plan, rows, max_bytes=max_bytes))
    assert [row for part in parts for row in part] == list(rows)
    assert all(parts)


def test_windows_keep_to_their_size(tmp_path: Path) -> None:
    container, plan, _ = paged("2.1")
    source = container.source
    assert isinstance(source, MemorySource)
    columns = len(plan.grafts)
    for part in windows(container, plan, range(ROWS), max_bytes=100_000):
        source.reads.clear()
        transplant(container, plan, tmp_path / "x.lance", rows=part)
        # Beside what was asked for, each column may share a page with the window before.
        assert source.bytes_read < 100_000 + 2 * columns * 20_000


def test_a_file_without_rows_can_be_transplanted(tmp_path: Path) -> None:
    path = written(tmp_path / "f.lance", many_pages().schema.empty_table(), "2.1")
    file = DataFileOnDisk.open(path, tmp_path)
    plan = plan_transplant(file.layout, file.layout.columns)
    transplant(file.container, plan, tmp_path / "x.lance")
    assert LanceFileReader(str(tmp_path / "x.lance")).read_all().to_table().num_rows == 0
    assert list(windows(file.container, plan, range(0), max_bytes=1)) == []


def test_buffers_outside_of_the_file_are_corrupt(tmp_path: Path) -> None:
    container, plan, _ = paged("2.1")
    source = container.source
    assert isinstance(source, MemorySource)
    cut = Container(
        source=MemorySource(source.data[:1000]),
        size_bytes=1000,
        version_numbers=container.version_numbers,
        column_metadata=container.column_metadata,
        global_buffers=container.global_buffers,
        tail=container.tail,
        tail_start=container.tail_start,
    )
    with pytest.raises(CorruptTableError):
        transplant(cut, plan, tmp_path / "x.lance")
