"""Vector columns of local files whose pages are the values themselves, read without the codec."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import FileIO

import pyarrow as pa

from lancelake.data.codec.container import Container
from lancelake.data.codec.page_layout import page_layout
from lancelake.data.codec.readers import CodecReader, explained, regular_file
from lancelake.data.column_reader import ColumnReader, RowOffsets
from lancelake.errors import CorruptTableError
from lancelake.proto import encodings21_pb2, file2_pb2
from lancelake.storage.table_files import FileAt

_BYTE = 8
# For less, it is not worth to look at the pages.
_LEAST_BYTES = 1 << 20
# More rows are read faster by several threads, which the codec has.
_MOST_TAKEN = 1 << 10


@dataclass(frozen=True, slots=True)
class PlainPages:
    """Pages of a column: the first row of each and the row after the last, and their starts."""

    first_rows: tuple[int, ...]
    starts: tuple[int, ...]
    width: int
    """Bytes of a row."""

    def extents(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yield where the bytes of some rows are in the file, and how many."""
        page = bisect_right(self.first_rows, start) - 1
        while start < stop:
            last = min(stop, self.first_rows[page + 1])
            within = (start - self.first_rows[page]) * self.width
            yield self.starts[page] + within, (last - start) * self.width
            start, page = last, page + 1


def row_width(dtype: pa.DataType) -> int | None:
    """Return the bytes of a row of vectors of numbers; None for other types."""
    if not pa.types.is_fixed_size_list(dtype) or not dtype.list_size:
        return None
    item = dtype.value_type
    is_number = pa.types.is_floating(item) or pa.types.is_integer(item)
    return dtype.list_size * item.bit_width // _BYTE if is_number else None


def plain_pages(container: Container, index: int, dtype: pa.DataType) -> PlainPages | None:
    """Return the pages of a column of vectors; None if one of them has nulls or is compressed."""
    width = row_width(dtype)
    if width is None or not container.version.leaves_only:
        return None
    rows, first_rows, starts = 0, [0], []
    for page in container.column(index).pages:
        if not _is_plain(page, dtype, width):
            return None
        starts.append(page.buffer_offsets[0])
        rows += page.length
        first_rows.append(rows)
    return PlainPages(tuple(first_rows), tuple(starts), width)


def _is_plain(page: file2_pb2.ColumnMetadata.Page, dtype: pa.DataType, width: int) -> bool:
    if not page.length or list(page.buffer_sizes) != [page.length * width]:
        return False
    layout = page_layout(page).full_zip_layout
    values = layout.value_compression.fixed_size_list
    flat = values.values.flat
    return (
        list(layout.layers) == [encodings21_pb2.REPDEF_ALL_VALID_ITEM]
        and not (layout.bits_rep or layout.bits_def or values.has_validity)
        and values.items_per_value == dtype.list_size
        and flat.bits_per_value == dtype.value_type.bit_width
        and not flat.HasField("data")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainVectors:
    """A column of vectors of a local file; what is not plain is read by the codec."""

    decoded: ColumnReader
    codec: CodecReader
    place: FileAt
    pages: Callable[[], PlainPages | None]
    """Returns the pages, once they are needed."""

    @property
    def schema(self) -> pa.Schema:
        """Schema of all batches."""
        return self.decoded.schema

    @property
    def num_rows(self) -> int:
        """Physical rows of the file."""
        return self.decoded.num_rows

    def take(self, offsets: RowOffsets) -> pa.RecordBatch:
        """Return the rows at these offsets, sorted and unique."""
        is_few = 0 < len(offsets) <= _MOST_TAKEN and int(offsets[-1]) < self.num_rows
        pages = self._whole_pages() if is_few and hasattr(os, "posix_fadvise") else None
        file = None if pages is None else self._opened()
        if pages is None or file is None:
            return self.decoded.take(offsets)
        rows = offsets.tolist()
        self.codec.account(rows)
        with file:
            extents = [next(pages.extents(row, row + 1)) for row in rows]
            # The disk loads all rows at once, as it does for the codec.
            for begin, length in extents:
                os.posix_fadvise(file.fileno(), begin, length, os.POSIX_FADV_WILLNEED)
            return self._read(file, extents, len(rows))

    def batches(self, *, start: int, stop: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield rows start to stop in order, in batches of `batch_rows`, except for the last."""
        pages = self._pages_of(start, stop)
        file = None if pages is None else self._opened()
        if pages is None or file is None:
            yield from self.decoded.batches(start=start, stop=stop, batch_rows=batch_rows)
            return
        self.codec.account(range(start, stop))
        with file:
            for first in range(start, stop, batch_rows):
                last = min(stop, first + batch_rows)
                yield self._read(file, pages.extents(first, last), last - first)

    def _pages_of(self, start: int, stop: int) -> PlainPages | None:
        width = row_width(self.schema.field(0).type)
        if width is None or (stop - start) * width < _LEAST_BYTES:
            return None
        return self._whole_pages()

    def _whole_pages(self) -> PlainPages | None:
        """Return the pages, if they have all rows."""
        pages = self.pages()
        return pages if pages is not None and pages.first_rows[-1] == self.num_rows else None

    def _opened(self) -> FileIO | None:
        """Open the file; None if that fails, for which the codec knows the reason."""
        try:
            return FileIO(regular_file(self.place))
        except OSError:
            return None

    def _read(self, file: FileIO, extents: Iterable[tuple[int, int]], rows: int) -> pa.RecordBatch:
        dtype = self.schema.field(0).type
        buffer = pa.allocate_buffer(rows * (row_width(dtype) or 0))
        target = memoryview(buffer).cast("B")
        at = 0
        with explained(self.place.path):
            for begin, length in extents:
                _read(file, begin, target[at : at + length], self.place.path)
                at += length
        items = pa.Array.from_buffers(dtype.value_type, rows * dtype.list_size, [None, buffer])
        vectors = pa.Array.from_buffers(dtype, rows, [None], children=[items])
        return pa.RecordBatch.from_arrays([vectors], schema=self.schema)


def _read(file: FileIO, begin: int, target: memoryview, path: str) -> None:
    file.seek(begin)
    done = 0
    while done < len(target):
        count = file.readinto(target[done:])
        if not count:
            raise CorruptTableError(f"data file {path} ends within its values", path=path)
        done += count
