"""Sizes of column reads: the stored bytes of the pages that contain the rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from pyroaring import BitMap

from lancelake.data.codec.file_ends import container_at
from lancelake.data.codec.stored_offsets import columns_named
from lancelake.format.row_address import bitmap_of
from lancelake.proto import file2_pb2
from lancelake.storage.instrumented import ColumnRead, IoAccount
from lancelake.storage.table_files import FileAt

_Projection = tuple[FileAt, tuple[str, ...] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSize:
    """A number of bytes; unless exact, the number that was read is not greater."""

    size_bytes: int = 0
    is_exact: bool = True

    def __add__(self, other: ReadSize) -> ReadSize:
        """Return the sum."""
        return ReadSize(
            size_bytes=self.size_bytes + other.size_bytes,
            is_exact=self.is_exact and other.is_exact,
        )

    def __str__(self) -> str:
        """Format as metrics of a plan."""
        return f"{self.size_bytes}" if self.is_exact else f"{self.size_bytes} (at most)"


def bytes_read(account: IoAccount) -> ReadSize:
    """Return the bytes that an operation read, without footers and column metadata of files.

    The codec reads pages as a whole if it needs all of their rows, and otherwise parts of them
    that it does not report: then the size of these pages is the limit. This opens the files
    again, which is not added to the account.
    """
    total = account.store_bytes_read + sum(read.size_bytes for read in account.buffers)
    size = ReadSize(size_bytes=total)
    for (place, columns), rows in _passes(account.reads):
        size += _page_bytes(place, columns, rows)
    return size


def _passes(reads: Iterable[ColumnRead]) -> Iterator[tuple[_Projection, BitMap]]:
    """Join reads of different rows of the same columns; repeated rows are another pass."""
    passes: dict[_Projection, list[BitMap]] = {}
    for read in reads:
        rows = _row_set(read.rows)
        earlier = passes.setdefault((cast(FileAt, read.place), read.columns), [])
        free = next((covered for covered in earlier if not covered.intersect(rows)), None)
        if free is None:
            earlier.append(rows)
        else:
            free |= rows
    for projection, every in passes.items():
        yield from ((projection, rows) for rows in every)


def _row_set(rows: range | Sequence[int]) -> BitMap:
    if isinstance(rows, range):
        return BitMap(rows)
    return bitmap_of(np.asarray(rows, dtype=np.uint32))


def _page_bytes(place: FileAt, columns: tuple[str, ...] | None, rows: BitMap) -> ReadSize:
    container = container_at(place)
    descriptor = container.descriptor()
    size = ReadSize()
    for index in columns_named(container, columns):
        size += _column_bytes(container.column(index), int(descriptor.length), rows)
    return size


def _column_bytes(column: file2_pb2.ColumnMetadata, num_rows: int, rows: BitMap) -> ReadSize:
    sizes = [sum(page.buffer_sizes) for page in column.pages]
    if len(rows) == num_rows:
        return ReadSize(size_bytes=sum(sizes))
    if sum(page.length for page in column.pages) != num_rows:
        # Pages of values in lists; which of them belong to the rows is in other columns.
        return ReadSize(size_bytes=sum(sizes), is_exact=False)
    read = ReadSize()
    first = 0
    for page, size in zip(column.pages, sizes, strict=True):
        count = rows.range_cardinality(first, first + page.length)
        if count:
            read += ReadSize(size_bytes=size, is_exact=count == page.length)
        first += page.length
    return read
