"""Bounds of rows in pages since 2.1: offsets of rows, lengths of values, and rows of chunks.

The codec trusts them: it takes the memory between two offsets that are not in order, and ends the
process where a page has fewer rows than it claims. They are checked before it reads the rows.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from lancelake.data.codec.file_ends import regular_file
from lancelake.data.codec.file_layout import (
    ChunkedLists,
    ChunkedValues,
    Container,
    Extent,
    ZippedRows,
    row_bounds,
)
from lancelake.data.codec.stored_offsets import Rows
from lancelake.errors import CorruptTableError
from lancelake.storage.table_files import FileAt

I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]
Read = Callable[[int, int], bytes]
"""Returns bytes of a file: start and length."""

_WIDTHS = (1, 2, 4, 8)
_LENGTHS = (0, 4, 8)
_LONG = 8
_MOST_WORD_BYTES = 4
_MOST_ROWS = 1 << 32
_WORD_UNIT = 8
_WORD_SIZE_SHIFT = 4
# Small pages are checked as a whole, so that later reads have nothing left to check.
_SMALL_PAGE_BYTES = 1 << 20
_AT_ONCE = 1 << 20
# Of larger rows only the lengths are read.
_LARGE_ROW_BYTES = 8 << 10
# The items of fewer rows are found one by one.
_FEW = 32
# More than any file has.
_MOST_BYTES = 1 << 48
_NONE = BitMap()


class BoundedPage:
    """Rows of one page, of which some are checked."""

    def __init__(
        self,
        layout: ZippedRows | ChunkedLists,
        rows: range,
        per_row: int,
        buffers: list[Extent],
    ) -> None:
        """Describe a page with `per_row` items for each of some rows of the file."""
        self.layout, self.rows, self.buffers = layout, rows, buffers
        self.count = len(rows) * per_row
        is_small = sum(extent.length for extent in buffers) <= _SMALL_PAGE_BYTES
        self._has_parts = isinstance(layout, ZippedRows) and per_row == 1 and not is_small
        self._checked = BitMap()

    def unchecked(self, rows: Rows) -> BitMap:
        """Return which rows of the page have to be checked before some of the file are read."""
        first, stop = self.rows.start, self.rows.stop
        here: Rows
        if isinstance(rows, range):
            here = range(max(first, rows.start), min(stop, rows.stop))
        else:
            here = rows[bisect_left(rows, first) : bisect_left(rows, stop)]
        if not here:
            return _NONE
        if not self._has_parts:
            return BitMap(range(self.count)) - self._checked
        return BitMap([row - first for row in here]) - self._checked

    def add_checked(self, rows: BitMap) -> None:
        """Remember rows that are checked."""
        self._checked |= rows

    @property
    def is_checked(self) -> bool:
        """Whether all rows are checked."""
        return len(self._checked) == self.count


class UncheckedRows:
    """Rows of some columns of a file, each checked before its first read."""

    def __init__(self, place: FileAt, container: Container, pages: Iterable[BoundedPage]) -> None:
        self._place, self._container = place, container
        self._pages = list(pages)

    def check(self, rows: Rows) -> None:
        """Raise CorruptTableError for rows that the codec cannot find without harm."""
        asked = [(page, wanted) for page in self._pages if (wanted := page.unchecked(rows))]
        if not asked:
            return
        with _reading(self._place, self._container) as read:
            for page, wanted in asked:
                problem = _problem(read, page, wanted)
                if problem is not None:
                    raise _corrupt(self._container, problem)
                page.add_checked(wanted)
        self._pages = [page for page in self._pages if not page.is_checked]


def unchecked_rows(
    place: FileAt, container: Container, columns: Iterable[int]
) -> UncheckedRows | None:
    """Find the pages of some columns whose rows have bounds; None without any."""
    num_rows = container.descriptor().length
    pages = [page for index in columns for page in _pages(container, index, num_rows)]
    return UncheckedRows(place, container, pages) if pages else None


def _pages(container: Container, index: int, num_rows: int) -> Iterator[BoundedPage]:
    column = container.column(index)
    per_row = sum(page.length for page in column.pages) // max(1, num_rows)
    first = 0
    for page in column.pages:
        rows = range(first, first + page.length // max(1, per_row))
        first = rows.stop
        layout = row_bounds(page.encoding.direct.encoding)
        if layout is not None and not isinstance(layout, ChunkedValues) and page.length:
            if page.length > _MOST_ROWS:
                raise _corrupt(container, f"a page claims {page.length} rows")
            buffers = list(map(Extent, page.buffer_offsets, page.buffer_sizes))
            yield BoundedPage(layout, rows, per_row, buffers)


@contextmanager
def _reading(place: FileAt, container: Container) -> Iterator[Read]:
    if place.root.scheme != "file":
        yield lambda start, length: container.read(Extent(start, length))
        return
    descriptor = os.open(regular_file(place), os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        yield lambda start, length: os.pread(descriptor, length, start)
    finally:
        os.close(descriptor)


def _problem(read: Read, page: BoundedPage, wanted: BitMap) -> str | None:
    """Return what is wrong with rows of a page."""
    if len(page.buffers) < 2:  # noqa: PLR2004  # the rows, and where they are
        return "a page has no offsets of its rows"
    if isinstance(page.layout, ChunkedLists):
        return _chunk_problem(read, page.layout, page.buffers, page.count)
    if page.layout.word_bytes > _MOST_WORD_BYTES or page.layout.length_bytes not in _LENGTHS:
        return "a page has levels or lengths of unknown sizes"
    width, rest = divmod(page.buffers[1].length, page.count + 1)
    if width not in _WIDTHS or rest:
        return "a page has other offsets than rows"
    is_right = _few_are_right if len(wanted) < min(_FEW, page.count) else _are_right
    if is_right(read, page.layout, page.buffers, wanted, width):
        return None
    return "the offsets of a page and the lengths of its values contradict each other"


def _chunk_problem(
    read: Read, layout: ChunkedLists, buffers: list[Extent], count: int
) -> str | None:
    words = np.frombuffer(
        read(*buffers[0])[: buffers[0].length // layout.word_bytes * layout.word_bytes],
        f"<u{layout.word_bytes}",
    )
    sizes = (words >> _WORD_SIZE_SHIFT).astype(np.int64) + 1
    if int(sizes.sum()) * _WORD_UNIT > buffers[1].length:
        return "a chunk is outside of its page"
    stored = read(*buffers[-1])
    if len(stored) != len(words) * layout.numbers * 8:
        return "a page has other chunks than numbers of rows"
    numbers = np.frombuffer(stored, "<u8").reshape(len(words), layout.numbers)
    ended, begun = numbers[:, 0], numbers[-1:, 1]
    if int(ended.max(initial=0)) > count or int(ended.sum()) + int((begun > 0).sum()) < count:
        return "the chunks of a page have other rows"
    return None


def _few_are_right(
    read: Read, layout: ZippedRows, buffers: list[Extent], rows: Iterable[int], width: int
) -> bool:
    """Whether the items of each row end where it does, and no other row begins in it."""
    data, index = buffers[:2]
    for row in rows:
        pair = read(index.start + row * width, 2 * width)
        start, end = (int.from_bytes(pair[n : n + width], "little") for n in (0, width))
        if not start < end <= data.length:
            return False
        head = layout.word_bytes + layout.length_bytes
        content = read(data.start + start, end - start if layout.has_lists else head)
        if not _is_followed(layout, content, 0, end - start, is_first=True):
            return False
    return True


def _are_right(
    read: Read, layout: ZippedRows, buffers: list[Extent], rows: BitMap, width: int
) -> bool:
    """Whether the same is true for many rows; all rows of a page have to fill it."""
    data, index = buffers[:2]
    first, last = rows.min(), rows.max()
    size = (last - first + 2) * width
    stored = np.frombuffer(read(index.start + first * width, size), f"<u{width}")
    if stored.nbytes < size or int(stored.max()) > data.length:
        return False
    offsets = stored.astype(np.int64)
    starts, ends = offsets[:-1], offsets[1:]
    if len(rows) < len(starts):
        here = np.asarray(rows.to_array(), np.int64) - first
        starts, ends = starts[here], ends[here]
    elif width * (len(rows) + 1) == index.length and (starts[0] != 0 or ends[-1] != data.length):
        return False
    return bool((starts < ends).all()) and _have_items(read, layout, data.start, starts, ends)


def _have_items(read: Read, layout: ZippedRows, data: int, starts: I64, ends: I64) -> bool:
    head = layout.word_bytes + layout.length_bytes
    at = 0
    while at < len(starts):
        begin = int(starts[at])
        stop = max(at + 1, int(np.searchsorted(ends, begin + _AT_ONCE, "right")))
        size = int(ends[stop - 1]) - begin
        if not layout.has_lists and size > _LARGE_ROW_BYTES * (stop - at):
            heads = (read(data + start, head) for start in starts[at:stop].tolist())
            loaded = np.frombuffer(b"".join(each.ljust(head, b"\0") for each in heads), np.uint8)
            sizes, _ = _next_items(layout, loaded, np.arange(0, len(loaded), head))
            is_right = np.array_equal(sizes, ends[at:stop] - starts[at:stop])
        else:
            # The last item may have a shorter head, which the end of the file follows.
            loaded = np.frombuffer(read(data + begin, size + head), np.uint8)
            is_right = len(loaded) == size + head and _are_followed(
                layout, loaded, starts[at:stop] - begin, ends[at:stop] - begin
            )
        if not is_right:
            return False
        at = stop
    return True


def _are_followed(layout: ZippedRows, loaded: U8, cursors: I64, ends: I64) -> bool:
    """Whether the items of each row end where it does, and the first alone begins a row."""
    is_first = True
    while is_first or len(cursors) > _FEW:
        sizes, begin_rows = _next_items(layout, loaded, cursors)
        cursors = cursors + sizes
        if (cursors > ends).any() or (layout.has_lists and bool(np.any(begin_rows != is_first))):
            return False
        has_more = cursors < ends
        if not layout.has_lists:
            return not has_more.any()
        cursors, ends = cursors[has_more], ends[has_more]
        is_first = False
    content = loaded.tobytes()
    rows = zip(cursors.tolist(), ends.tolist(), strict=True)
    return all(_is_followed(layout, content, start, end, is_first=False) for start, end in rows)


def _next_items(
    layout: ZippedRows, loaded: U8, places: I64
) -> tuple[I64, npt.NDArray[np.bool_] | None]:
    """Return the sizes of the items at some places, and with levels which of them begin a row."""
    word, length = layout.word_bytes, layout.length_bytes
    if length:
        lengths = _numbers_at(loaded, places + word, length)
        if length == _LONG:
            lengths = np.minimum(lengths, _MOST_BYTES)
        sizes = lengths.astype(np.int64) + (word + length)
    else:
        sizes = np.full(len(places), word + layout.value_bytes, np.int64)
    if not word:
        return sizes, None
    levels = _numbers_at(loaded, places, word)
    definition = levels & ((1 << layout.bits_def) - 1) if layout.has_lists else levels
    has_value = definition <= (0 if length else layout.most_visible)
    return np.where(has_value, sizes, word), (levels >> layout.bits_def) == layout.most_rep


def _numbers_at(loaded: U8, places: I64, width: int) -> npt.NDArray[np.unsignedinteger]:
    """Return the numbers that begin at any places."""
    count = len(loaded) - width + 1
    numbers: npt.NDArray[np.unsignedinteger] = np.ndarray(
        (count,), f"<u{width}", loaded, strides=(1,)
    )[places]
    return numbers


def _is_followed(
    layout: ZippedRows, content: bytes, cursor: int, end: int, *, is_first: bool
) -> bool:
    """Whether items from one place on lead to another; with `is_first` the first begins a row."""
    word, length = layout.word_bytes, layout.length_bytes
    while cursor < end:
        levels = int.from_bytes(content[cursor : cursor + word], "little")
        definition = levels & ((1 << layout.bits_def) - 1) if layout.has_lists else levels
        begins_row = levels >> layout.bits_def == layout.most_rep or not layout.has_lists
        if begins_row != is_first:
            return False
        is_first = False
        cursor += word
        if length and definition == 0:
            cursor += length + int.from_bytes(content[cursor : cursor + length], "little")
        elif not length and definition <= layout.most_visible:
            cursor += layout.value_bytes
    return cursor == end


def _corrupt(container: Container, problem: str) -> CorruptTableError:
    name = container.source.name
    return CorruptTableError(f"data file {name} cannot be read: {problem}", path=name)
