"""Reads that the codec does slowly or wrong, done around it."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import FileIO

import numpy as np
import pyarrow as pa
from google.protobuf import any_pb2
from google.protobuf.message import DecodeError

from lancelake.data.arrays.batches import rebatched
from lancelake.data.codec.file_ends import regular_file
from lancelake.data.codec.file_layout import (
    ColumnKind,
    Container,
    FileLayout,
    PhysicalColumn,
    levels_above_lists,
    page_layout,
)
from lancelake.data.codec.readers import CodecReader, explained, row_width
from lancelake.data.column_reader import ColumnReader, RowOffsets
from lancelake.errors import CorruptTableError
from lancelake.proto import encodings20_pb2, encodings21_pb2, file2_pb2
from lancelake.storage.table_files import FileAt

_OFFSETS_AND_BYTES = ("string", "binary", "large_string", "large_binary")


def layout_with_gaps(
    container: Container, regular: FileLayout, listed: Sequence[int] = ()
) -> FileLayout:
    """Return a layout with the indices that the columns have in the file.

    The first releases that wrote 2.0 files stored strings and binaries in two columns, offsets
    and bytes, which shows in a column's encoding. Where that does not explain every column of the
    file, the indices `listed` in the manifest are used, which are those of the columns of the
    schema, in order.
    """
    columns = tuple(_walked(container, regular))
    if columns and columns[-1].index + columns[-1].width == container.num_columns:
        return replace(regular, columns=columns, is_plain=False, has_gaps=True)
    places = sorted(set(listed))
    if len(places) != len(regular.columns) or not _are_inside(places, container):
        name = container.source.name
        raise CorruptTableError(
            f"data file {name} has {container.num_columns} columns, its schema "
            f"{len(regular.columns)}, and the manifest lists {len(places)}",
            path=name,
        )
    columns = tuple(
        _moved(container, regular, column, index)
        for column, index in zip(regular.columns, places, strict=True)
    )
    return replace(regular, columns=columns, is_plain=False, has_gaps=True)


def _walked(container: Container, regular: FileLayout) -> Iterator[PhysicalColumn]:
    """Number the columns consecutively, up to the number of columns in the file."""
    index = 0
    for column in regular.columns:
        if index >= container.num_columns:
            return
        moved = _moved(container, regular, column, index)
        yield moved
        index += moved.width


def _moved(
    container: Container, regular: FileLayout, column: PhysicalColumn, index: int
) -> PhysicalColumn:
    is_split = (
        not regular.version.leaves_only
        and column.kind is ColumnKind.VALUES
        and column.field.logical_type in _OFFSETS_AND_BYTES
        and _holds_offsets(container, index)
    )
    return replace(column, index=index, width=2 if is_split else 1)


def _holds_offsets(container: Container, index: int) -> bool:
    pages = container.column(index).pages
    if not pages:
        return False
    envelope, encoding = any_pb2.Any(), encodings20_pb2.ArrayEncoding()
    try:
        envelope.ParseFromString(pages[0].encoding.direct.encoding)
        envelope.Unpack(encoding)
    except DecodeError as cause:
        name = container.source.name
        raise CorruptTableError(
            f"the encoding of column {index} of data file {name} cannot be decoded", path=name
        ) from cause
    return encoding.HasField("list")


def _are_inside(places: Sequence[int], container: Container) -> bool:
    return not places or (places[0] >= 0 and places[-1] < container.num_columns)


def page_seams(container: Container, columns: Iterable[int]) -> tuple[int, ...]:
    """Find the seams of some columns, in the order of their offsets."""
    return tuple(sorted({seam for n in columns for seam in _seams(container.column(n))}))


def _seams(column: file2_pb2.ColumnMetadata) -> Iterator[int]:
    rows = 0
    before: tuple[bool, ...] | None = None
    for page in column.pages:
        levels = levels_above_lists(page)
        if before is not None and levels != before:
            yield rows
        before = levels
        rows += page.length


@dataclass(frozen=True, slots=True, kw_only=True)
class SeamedColumns:
    """Columns of one file that are read in parts, between the seams of their pages."""

    columns: ColumnReader
    seams: tuple[int, ...]

    @property
    def schema(self) -> pa.Schema:
        """Schema of all batches."""
        return self.columns.schema

    @property
    def num_rows(self) -> int:
        """Physical rows of the file."""
        return self.columns.num_rows

    def batches(self, *, start: int, stop: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield rows start to stop in order, in batches of `batch_rows`, except for the last."""
        parts = (
            batch
            for part in self._parts(start, stop)
            for batch in self.columns.batches(
                start=part.start, stop=part.stop, batch_rows=batch_rows
            )
        )
        return rebatched(parts, batch_rows)

    def take(self, offsets: RowOffsets) -> pa.RecordBatch:
        """Return the rows at these offsets, sorted and unique."""
        parts = np.split(offsets, np.searchsorted(offsets, self.seams))
        taken = [self.columns.take(part) for part in parts if len(part)]
        return pa.concat_batches(taken) if taken else self.columns.take(offsets)

    def _parts(self, start: int, stop: int) -> Iterator[range]:
        here = self.seams[bisect_right(self.seams, start) :]
        for seam in here:
            if seam >= stop:
                break
            yield range(start, seam)
            start = seam
        yield range(start, stop)


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

    @property
    def nbytes(self) -> int:
        """Memory of the numbers, about."""
        return 32 * (len(self.first_rows) + len(self.starts))

    def extents(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yield where the bytes of some rows are in the file, and how many."""
        page = bisect_right(self.first_rows, start) - 1
        while start < stop:
            last = min(stop, self.first_rows[page + 1])
            within = (start - self.first_rows[page]) * self.width
            yield self.starts[page] + within, (last - start) * self.width
            start, page = last, page + 1


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
