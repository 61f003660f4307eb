"""Sizes of column reads: the stored bytes of the pages that contain the rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from pyroaring import BitMap

from lancelake.data.byte_source import StoreSource
from lancelake.data.codec import file_layout
from lancelake.data.codec.container import Container, open_container
from lancelake.format import roaring
from lancelake.format.column_path import quoted_path
from lancelake.proto import file2_pb2
from lancelake.storage.io_account import ColumnRead, IoAccount
from lancelake.storage.open import open_store
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
    found = ReadSize(size_bytes=total)
    for (place, columns), rows in _passes(account.reads):
        found += _page_bytes(place, columns, rows)
    return found


def _passes(reads: Iterable[ColumnRead]) -> Iterator[tuple[_Projection, BitMap]]:
    """Join reads of different rows of the same columns; repeated rows are another pass."""
    passes: dict[_Projection, list[BitMap]] = {}
    for read in reads:
        rows = _row_set(read.rows)
        earlier = passes.setdefault((read.place, read.columns), [])
        free = next((known for known in earlier if not known.intersect(rows)), None)
        if free is None:
            earlier.append(rows)
        else:
            free |= rows
    for projection, every in passes.items():
        yield from ((projection, rows) for rows in every)


def _row_set(rows: range | Sequence[int]) -> BitMap:
    if isinstance(rows, range):
        return BitMap(rows)
    return roaring.of(np.asarray(rows, dtype=np.uint32))


def _page_bytes(place: FileAt, columns: tuple[str, ...] | None, rows: BitMap) -> ReadSize:
    container = open_container(StoreSource(open_store(place.root), place.path))
    descriptor = container.descriptor()
    found = ReadSize()
    for index in _physical_columns(container, columns):
        found += _column_bytes(container.column(index), int(descriptor.length), rows)
    return found


def _physical_columns(container: Container, columns: tuple[str, ...] | None) -> Iterator[int]:
    """Yield the indices of the columns with these names, around them and nested in them.

    All columns, if their indices do not follow from the schema.
    """
    layout = file_layout.decode(container.descriptor(), container.version)
    if columns is None or container.num_columns != len(layout.columns):
        yield from range(container.num_columns)
        return
    wanted = {form for name in columns for form in (name, quoted_path((name,)))}
    for column in layout.columns:
        names = {quoted_path(column.path[: depth + 1]) for depth in range(len(column.path))}
        inside = f"{quoted_path(column.path)}."
        if not names.isdisjoint(wanted) or any(name.startswith(inside) for name in wanted):
            yield column.index


def _column_bytes(column: file2_pb2.ColumnMetadata, num_rows: int, rows: BitMap) -> ReadSize:
    sizes = [sum(page.buffer_sizes) for page in column.pages]
    if len(rows) == num_rows:
        return ReadSize(size_bytes=sum(sizes))
    if sum(page.length for page in column.pages) != num_rows:
        # Pages of values in lists; which of them belong to the rows is in other columns.
        return ReadSize(size_bytes=sum(sizes), is_exact=False)
    found = ReadSize()
    first = 0
    for page, size in zip(column.pages, sizes, strict=True):
        count = rows.range_cardinality(first, first + page.length)
        if count:
            found += ReadSize(size_bytes=size, is_exact=count == page.length)
        first += page.length
    return found
