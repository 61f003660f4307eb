"""The bytes of reads are the stored sizes of the pages that contain their rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.data.codec.file_layout import open_container
from lancelake.data.codec.read_sizes import ReadSize, bytes_read
from lancelake.data.column_reader import StoreSource
from lancelake.storage.instrumented import BufferRead, ColumnRead, IoAccount
from lancelake.storage.table_files import FileAt

ROWS = 5_000_000


@pytest.fixture(scope="module", params=["2.0", "2.1"])
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> FileAt:
    """Return a file of two columns, the first in several pages."""
    rows = np.random.default_rng(1).integers(0, 1 << 60, ROWS)
    table = pa.table({"a": rows, "b": np.arange(ROWS) % 7 == 0})
    return _written(table, tmp_path_factory.mktemp("sizes"), request.param)


def _written(table: pa.Table, folder: Path, version: str) -> FileAt:
    uri = str(folder / "t")
    options = {"data_storage_version": version, "max_rows_per_file": ROWS}
    snapshot = lance.write_dataset(table, uri, **options)._snapshot
    return snapshot.files.data_file(snapshot.manifest.fragments[0].files[0])


def _pages(file: FileAt, column: int) -> list[tuple[int, int]]:
    """Return the rows and the size of each page."""
    container = open_container(StoreSource(file.root.store, file.path))
    pages = container.column(column).pages
    return [(page.length, sum(page.buffer_sizes)) for page in pages]


def _size(*reads: ColumnRead | BufferRead) -> ReadSize:
    account = IoAccount()
    for read in reads:
        account.add(read)
    return bytes_read(account)


def test_a_whole_column_has_the_size_of_its_pages(file: FileAt) -> None:
    read = ColumnRead(place=file, columns=("a",), rows=range(ROWS))
    assert _size(read) == ReadSize(size_bytes=sum(size for _, size in _pages(file, 0)))


def test_all_columns_are_the_sum_of_each(file: FileAt) -> None:
    every, a, b = (
        _size(ColumnRead(place=file, columns=names, rows=range(ROWS)))
        for names in (None, ("a",), ("b",))
    )
    assert every == a + b


def test_consecutive_reads_of_a_page_are_one(file: FileAt) -> None:
    parts = [
        ColumnRead(place=file, columns=("a",), rows=range(start, start + ROWS // 4))
        for start in range(0, ROWS, ROWS // 4)
    ]
    assert _size(*parts) == _size(ColumnRead(place=file, columns=("a",), rows=range(ROWS)))


def test_single_rows_have_at_most_the_size_of_their_pages(file: FileAt) -> None:
    (first, size), (_, second_size), *_ = _pages(file, 0)
    one = ColumnRead(place=file, columns=("a",), rows=[5])
    both = ColumnRead(place=file, columns=("a",), rows=[5, 6, first + 1])
    assert _size(one) == ReadSize(size_bytes=size, is_exact=False)
    assert _size(both) == ReadSize(size_bytes=size + second_size, is_exact=False)


def test_a_whole_page_is_exact(file: FileAt) -> None:
    first, size = _pages(file, 0)[0]
    read = ColumnRead(place=file, columns=("a",), rows=range(first))
    assert _size(read) == ReadSize(size_bytes=size)


def test_rows_that_are_read_twice_count_twice(file: FileAt) -> None:
    read = ColumnRead(place=file, columns=("b",), rows=range(ROWS))
    assert _size(read, read) == _size(read) + _size(read)


@pytest.mark.parametrize("name", ["a", "`a`"])
def test_columns_are_found_with_and_without_quotes(file: FileAt, name: str) -> None:
    assert _size(ColumnRead(place=file, columns=(name,), rows=range(ROWS))).size_bytes > 0


def test_global_buffers_count_with_their_size(file: FileAt) -> None:
    assert _size(BufferRead(place=file, size_bytes=9)) == ReadSize(size_bytes=9)


def test_a_size_shows_whether_it_is_a_limit() -> None:
    assert str(ReadSize(size_bytes=3)) == "3"
    assert str(ReadSize(size_bytes=3, is_exact=False)) == "3 (at most)"


def test_values_of_lists_are_counted_as_a_whole(tmp_path: Path) -> None:
    table = pa.table({"l": [[1, 2, 3]] * 100, "s": [{"x": 1, "y": 2}] * 100})
    file = _written(table, tmp_path, "2.0")
    whole = _size(ColumnRead(place=file, columns=("l",), rows=range(100)))
    part = _size(ColumnRead(place=file, columns=("l",), rows=range(50)))
    assert whole.is_exact
    assert not part.is_exact
    assert part.size_bytes == whole.size_bytes
    assert _size(ColumnRead(place=file, columns=("`s`.`x`",), rows=range(100))).size_bytes > 0
