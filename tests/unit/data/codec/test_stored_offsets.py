"""Numbers in the pages of 2.0 files are checked before the codec follows them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lancelake.data.codec.file_layout import Container, open_container
from lancelake.data.codec.readers import open_reader
from lancelake.data.codec.stored_offsets import (
    Content,
    NumberPage,
    UncheckedPages,
    columns_named,
    unchecked_pages,
)
from lancelake.data.column_reader import LoadedSource
from lancelake.errors import CorruptTableError
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt
from tests.support.data_files import written

ROWS = 600
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "items": [None if n % 7 == 0 else [n] * (n % 3) for n in range(ROWS)],
        "text": [None if n % 5 == 0 else f"text {n}" for n in range(ROWS)],
        "word": [f"a word of many {n % 4}" for n in range(ROWS)],
    }
)
COLUMNS = {Content.LISTS: "items", Content.BYTES: "text", Content.WORDS: "word"}


def container(root: Path, version: str = "2.0", page_bytes: int | None = None) -> Container:
    path = written(root / "x.lance", TABLE, version, page_bytes=page_bytes)
    return open_container(LoadedSource("x.lance", path.read_bytes()))


def pages(found: Container, *, is_near: bool = True) -> list[NumberPage]:
    unchecked = unchecked_pages(found, range(found.num_columns), is_near=is_near)
    return [] if unchecked is None else unchecked._pages


def damaged(root: Path, content: Content) -> FileAt:
    """Write a file of which one page of a kind has a number that is too large."""
    found = container(root)
    page = next(page for page in pages(found) if page.content is content and page.rows is not None)
    data = bytearray((root / "x.lance").read_bytes())
    at = page.extent.start + 20 * page.width
    data[at : at + page.width] = b"\xf0" * page.width
    (root / "x.lance").write_bytes(data)
    return FileAt(root=Location.parse(root), path="x.lance")


@pytest.mark.parametrize("content", Content)
def test_numbers_that_the_codec_cannot_follow_are_reported(
    tmp_path: Path, content: Content
) -> None:
    reader = open_reader(damaged(tmp_path, content), (COLUMNS[content],))
    with pytest.raises(CorruptTableError, match=r"data file x\.lance cannot be read"):
        next(reader.read_range(0, ROWS, batch_rows=ROWS, readahead=1))
    with pytest.raises(CorruptTableError, match=r"data file x\.lance cannot be read"):
        next(reader.take_rows([3, 20], readahead=1))


@pytest.mark.parametrize("content", Content)
def test_other_columns_are_still_read(tmp_path: Path, content: Content) -> None:
    reader = open_reader(damaged(tmp_path, content), ("id",))
    batches = reader.read_range(0, ROWS, batch_rows=ROWS, readahead=1)
    assert sum(batch.num_rows for batch in batches) == ROWS


def test_a_file_in_order_is_read(tmp_path: Path) -> None:
    found = container(tmp_path)
    assert {page.content for page in pages(found)} == set(Content)
    UncheckedPages(found, pages(found)).check(range(ROWS))


def test_a_page_is_checked_once(tmp_path: Path) -> None:
    found = container(tmp_path, page_bytes=2_000)
    unchecked = UncheckedPages(found, pages(found))
    before = len(unchecked._pages)
    unchecked.check([0])
    some = len(unchecked._pages)
    unchecked.check(range(ROWS))
    assert before > some > len(unchecked._pages) == 0


@pytest.mark.parametrize("column", [1, 3], ids=["items", "text"])
def test_numbers_of_an_unknown_size_are_reported(tmp_path: Path, column: int) -> None:
    found = container(tmp_path)
    data = bytearray((tmp_path / "x.lance").read_bytes())
    # The bits of a number: 64 become 34.
    data[data.index(b"\x08\x40", found.column_metadata[column].start) + 1] = 34
    damaged = open_container(LoadedSource("x.lance", bytes(data)))
    with pytest.raises(CorruptTableError, match="the numbers of a page have an unknown size"):
        unchecked_pages(damaged, [column])


def test_strings_of_files_far_away_are_not_read(tmp_path: Path) -> None:
    found = pages(container(tmp_path), is_near=False)
    assert Content.BYTES not in {page.content for page in found}


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_later_files_have_no_pages_to_check(tmp_path: Path, version: str) -> None:
    assert pages(container(tmp_path, version)) == []


def test_columns_have_those_below_them(tmp_path: Path) -> None:
    found = container(tmp_path)
    assert list(columns_named(found, ("items",))) == [1, 2]
    assert list(columns_named(found, None)) == list(range(found.num_columns))
