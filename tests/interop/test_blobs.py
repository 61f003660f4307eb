"""Blobs written by us and by official releases, read by both."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance as official
import lance.blob as official_blob
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.pylance import blob
from tests.support.compare import assert_same_table
from tests.support.official import RELEASES, interpreter, is_installed

SMALL, PACKED, LARGE = b"abc" * 10, b"p" * 70_000, b"L" * 4_200_000
BLOB_V1 = {"lance-encoding:blob": "true"}


def first_kind() -> pa.Table:
    """Return blobs of the first kind, at the top and in a struct."""
    values = [SMALL, None, b"", b"x" * 5000, b"zz"]
    member = pa.struct([pa.field("c", pa.large_binary(), metadata=BLOB_V1), ("k", pa.int32())])
    fields = [
        pa.field("i", pa.int64()),
        pa.field("b", pa.large_binary(), metadata=BLOB_V1),
        pa.field("s", member),
        pa.field("plain", pa.binary()),
    ]
    columns = [
        pa.array(range(5)),
        pa.array(values, pa.large_binary()),
        pa.array([{"c": value, "k": 1} for value in values], member),
        pa.array([b"1", None, b"", b"4", b"5"]),
    ]
    return pa.table(columns, schema=pa.schema(fields))


def second_kind(make: Any, outside: Path) -> pa.Table:
    """Return blobs of the second kind of every size, made by a module of blobs."""
    uri = outside.as_uri()
    values = [SMALL, None, b"", PACKED, LARGE, PACKED, uri, make.Blob.from_uri(uri, 5, 7)]
    schema = pa.schema([("i", pa.int64()), make.blob_field("b"), ("z", pa.string())])
    columns = [pa.array(range(8)), make.blob_array(values), pa.array(list("abcdefgh"))]
    return pa.table(columns, schema=schema)


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file beside no table."""
    path = tmp_path_factory.mktemp("outside") / "some file.bin"
    path.write_bytes(bytes(range(100)))
    return path


Writer = Callable[..., Any]
WRITERS = pytest.mark.parametrize("write", [official.write_dataset, lance.write_dataset])


def tables(write: Writer, folder: Path, outside: Path) -> list[Path]:
    """Write tables with blobs of all kinds and in all versions of data files."""
    for version in ("2.0", "2.1"):
        path = folder / f"{version}.lance"
        write(first_kind(), path, data_storage_version=version, max_rows_per_file=3)
    make = official_blob if write is official.write_dataset else blob
    write(
        second_kind(make, outside),
        folder / "2.2.lance",
        data_storage_version="2.2",
        allow_external_blob_outside_bases=True,
    )
    return sorted(folder.iterdir())


def contents(files: list[Any]) -> list[bytes | None]:
    """Read files whole."""
    return [None if file is None else file.read() for file in files]


@WRITERS
def test_blobs_of_rows_are_the_same(write: Writer, tmp_path: Path, outside: Path) -> None:
    for path in tables(write, tmp_path, outside):
        theirs, ours = official.dataset(path), lance.dataset(path)
        rows = [4, 0, 1, 1, 2, 3]
        expected = contents(theirs.take_blobs("b", indices=rows))
        assert contents(ours.take_blobs("b", indices=rows)) == expected
        assert ours.read_blobs("b", indices=rows) == theirs.read_blobs("b", indices=rows)


@WRITERS
@pytest.mark.parametrize("handling", ["all_binary", "blobs_descriptions", "all_descriptions", None])
def test_scans_show_the_same(
    write: Writer, tmp_path: Path, outside: Path, handling: str | None
) -> None:
    for path in tables(write, tmp_path, outside):
        theirs, ours = official.dataset(path), lance.dataset(path)
        expected = theirs.to_table(blob_handling=handling)
        found = ours.to_table(blob_handling=handling)
        assert found.schema.equals(expected.schema)
        assert_same_table(found, expected)


@WRITERS
def test_blobs_of_chosen_rows_come_in_scans(write: Writer, tmp_path: Path, outside: Path) -> None:
    options: dict[str, Any] = {
        "columns": ["b", "i"],
        "filter": "i > 1",
        "order_by": ["i"],
        "limit": 2,
        "blob_handling": "all_binary",
    }
    for path in tables(write, tmp_path, outside):
        expected = official.dataset(path).to_table(**options)
        assert_same_table(lance.dataset(path).to_table(**options), expected)


@WRITERS
def test_blobs_inside_structs_are_found(write: Writer, tmp_path: Path) -> None:
    write(first_kind(), tmp_path / "t.lance", data_storage_version="2.1")
    theirs, ours = official.dataset(tmp_path / "t.lance"), lance.dataset(tmp_path / "t.lance")
    expected = contents(theirs.take_blobs("s.c", indices=[0, 1, 2, 3, 4]))
    assert contents(ours.take_blobs("s.c", indices=[0, 1, 2, 3, 4])) == expected


@pytest.mark.parametrize("stable", [False, True])
def test_rows_are_named_by_id_address_or_number(tmp_path: Path, stable: bool) -> None:
    path = tmp_path / "t.lance"
    official.write_dataset(
        first_kind(), path, max_rows_per_file=2, enable_stable_row_ids=stable
    ).delete("i = 1")
    theirs, ours = official.dataset(path), lance.dataset(path)
    rows = theirs.to_table(columns=[], with_row_id=True, with_row_address=True)
    for by, column in (("ids", "_rowid"), ("addresses", "_rowaddr")):
        numbers = rows.column(column).to_pylist()[::-1]
        expected = theirs.read_blobs("b", **{by: numbers})
        assert ours.read_blobs("b", **{by: numbers}) == expected
        requests = [(numbers[1], 0, 5), (numbers[0], 1, 1), (numbers[1], 4999, 1)]
        selector: Any = by
        parts = theirs.read_blob_ranges("b", requests, selector=selector)
        assert ours.read_blob_ranges("b", requests, selector=by) == parts


REFUSED: list[tuple[str, dict[str, Any], type[Exception]]] = [
    ("b", {}, ValueError),
    ("b", {"ids": [0], "indices": [0]}, ValueError),
    ("i", {"indices": [0]}, ValueError),
    ("plain", {"indices": [0]}, ValueError),
    ("s", {"indices": [0]}, ValueError),
    ("b", {"indices": [50]}, ValueError),
    ("b", {"indices": [-1]}, OverflowError),
    ("b", {"ids": [77]}, ValueError),
    ("b", {"addresses": [9 << 32]}, ValueError),
    ("b", {"indices": [0], "buffer_size": -1}, ValueError),
    ("b", {"indices": [0], "buffer_size": "1"}, TypeError),
]


@pytest.mark.parametrize(("column", "rows", "kind"), REFUSED, ids=str)
def test_what_cannot_be_is_refused(
    tmp_path: Path, column: str, rows: dict[str, Any], kind: type[Exception]
) -> None:
    official.write_dataset(first_kind(), tmp_path / "t.lance")
    for module in (official, lance):
        with pytest.raises(kind):
            module.dataset(tmp_path / "t.lance").take_blobs(column, **rows)


STEPS: list[Callable[[Any], Any]] = [
    lambda f: f.read(10),
    lambda f: f.seek(20),
    lambda f: f.tell(),
    lambda f: f.read(0),
    lambda f: f.seek(-3, io.SEEK_CUR),
    lambda f: f.read1(7),
    lambda f: f.seek(-5, io.SEEK_END),
    lambda f: f.read(),
    lambda f: f.read(4),
    lambda f: f.seek(9999),
    lambda f: f.read(),
    lambda f: f.tell(),
    lambda f: f.read_range(3, 4),
    lambda f: f.read_ranges([(4990, 10), (0, 1)]),
    lambda f: f.seek(0),
    lambda f: f.readinto(bytearray(7)),
    lambda f: f.readinto(memoryview(bytearray(6000))),
    lambda f: (f.seek(0), f.readall()),
    lambda f: (f.size(), f.readable(), f.seekable(), f.writable(), f.closed, repr(f)),
    lambda f: f.seek(-1),
    lambda f: f.seek(0, 7),
    lambda f: f.read_range(4999, 2),
    lambda f: f.close(),
    lambda f: f.closed,
    lambda f: f.size(),
    lambda f: f.read(),
    lambda f: f.seek(0),
    lambda f: f.tell(),
]


@pytest.mark.parametrize("buffer_size", [0, 16, 1 << 19])
def test_files_behave_the_same(tmp_path: Path, buffer_size: int) -> None:
    values = bytes(i % 251 for i in range(5000))
    rows = pa.table(
        {"b": pa.array([values], pa.large_binary())},
        schema=pa.schema([pa.field("b", pa.large_binary(), metadata=BLOB_V1)]),
    )
    official.write_dataset(rows, tmp_path / "t.lance")
    theirs, ours = (
        module.dataset(tmp_path / "t.lance").take_blobs("b", indices=[0], buffer_size=buffer_size)
        for module in (official, lance)
    )
    for number, step in enumerate(STEPS):
        assert outcome(step, ours[0]) == outcome(step, theirs[0]), number


def outcome(step: Callable[[Any], Any], file: Any) -> Any:
    """Return what a step gives, or that it is refused."""
    try:
        return step(file)
    except ValueError:
        return ValueError


@pytest.mark.parametrize("release", RELEASES)
def test_blobs_written_by_us_are_read_by_a_release(
    release: str, tmp_path: Path, outside: Path
) -> None:
    if not is_installed(release):
        pytest.skip(f"pylance {release} is not installed")
    tables(lance.write_dataset, tmp_path, outside)
    script = (
        "import sys, lance\n"
        "for path in sys.argv[1:]:\n"
        "    ds = lance.dataset(path)\n"
        "    ids = ds.to_table(columns=['i'], with_row_id=True).column('_rowid').to_pylist()\n"
        "    found = [b for b in ds.take_blobs('b', ids=ids) if b is not None and b.size()]\n"
        "    print([(b.size(), b.read()[-2:]) for b in found])\n"
    )
    done = subprocess.run(
        [interpreter(release), "-c", script, *map(str, sorted(tmp_path.iterdir()))],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    old = [(30, b"bc"), (5000, b"xx"), (2, b"zz")]
    inside = [(30, b"bc"), (70_000, b"pp"), (4_200_000, b"LL"), (70_000, b"pp")]
    new = [*inside, (100, b"bc"), (7, b"\n\x0b")]
    assert done.stdout.splitlines() == [str(old), str(old), str(new)]
