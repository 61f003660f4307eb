"""Offsets of lists, strings and binaries, and numbers of words, in 2.0 files.

The codec trusts them: where the items of a list end before they start, or a dictionary has no such
word, it ends the process, and it takes the memory that the bytes of a string claim. They are
checked before it reads a page.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np
from google.protobuf import any_pb2
from google.protobuf.message import DecodeError

from lancelake.data.codec import file_layout
from lancelake.data.codec.file_layout import Container, Extent
from lancelake.errors import CorruptTableError
from lancelake.format.schema import quoted_path
from lancelake.proto import encodings20_pb2, file2_pb2

_BITS = (8, 16, 32, 64)

Rows = range | Sequence[int]
"""Rows of a file, sorted."""


class Content(Enum):
    """What numbers of a page tell."""

    LISTS = "where the items of lists end"
    BYTES = "where the bytes of strings and binaries end"
    WORDS = "which word of a dictionary a value is"


class NumberPage(NamedTuple):
    """Numbers of some rows."""

    content: Content
    extent: Extent
    width: int
    """Bytes of a number."""

    rows: range | None
    """None where they are of items of lists, whose rows other pages tell."""

    limit: int
    """What no number may exceed."""

    null_adjustment: int = 0
    """What is added to the offset of a null."""


class UncheckedPages:
    """Pages of numbers of some columns of a file, each checked before its first read."""

    def __init__(self, container: Container, pages: Iterable[NumberPage]) -> None:
        self._container = container
        self._pages = list(pages)

    def check(self, rows: Rows) -> None:
        """Raise CorruptTableError for numbers of these rows that the codec cannot follow."""
        for page in [page for page in self._pages if _concerns(page, rows)]:
            _check(self._container, page)
            self._pages.remove(page)


def unchecked_pages(
    container: Container, columns: Iterable[int], *, is_near: bool = True
) -> UncheckedPages | None:
    """Find the pages of numbers of some columns of a 2.0 file; later ones need no check.

    Compressed pages are left out, and offsets of strings and binaries unless the file `is_near`:
    to read them takes a request each.
    """
    if container.version.leaves_only:
        return None
    num_rows = container.descriptor().length
    pages: list[NumberPage] = []
    for index in columns:
        column = container.column(index)
        counts_rows = sum(page.length for page in column.pages) == num_rows
        first = 0
        for page in column.pages:
            rows = range(first, first + page.length)
            first += page.length
            offsets = _of_page(container, page, rows if counts_rows else None)
            pages += [each for each in offsets if is_near or each.content is not Content.BYTES]
    return UncheckedPages(container, pages)


def columns_named(container: Container, names: tuple[str, ...] | None) -> Iterator[int]:
    """Yield the indices of the columns with these names, around them and nested in them.

    All columns without names, or if their indices do not follow from the schema.
    """
    if names is None:
        yield from range(container.num_columns)
        return
    layout = file_layout.decode(container.descriptor(), container.version)
    if container.num_columns != len(layout.columns):
        yield from range(container.num_columns)
        return
    wanted = {form for name in names for form in (name, quoted_path((name,)))}
    for column in layout.columns:
        above = {quoted_path(column.path[: depth + 1]) for depth in range(len(column.path))}
        inside = f"{quoted_path(column.path)}."
        if not above.isdisjoint(wanted) or any(name.startswith(inside) for name in wanted):
            yield column.index


def _of_page(
    container: Container, page: file2_pb2.ColumnMetadata.Page, rows: range | None
) -> Iterator[NumberPage]:
    whole = encodings20_pb2.ArrayEncoding()
    envelope = any_pb2.Any()
    try:
        envelope.ParseFromString(page.encoding.direct.encoding)
        envelope.Unpack(whole)
    except DecodeError as cause:
        raise _corrupt(container, "the encoding of a page cannot be decoded") from cause
    for step, is_whole in _steps(whole, is_whole=True):
        if _has_odd_width(step):
            raise _corrupt(container, "the numbers of a page have an unknown size")
        numbers = _numbers(container, step, page, rows if is_whole else None)
        if numbers is None:
            continue
        if is_whole and numbers.extent.length < page.length * numbers.width:
            raise _corrupt(container, "a page has fewer numbers than rows")
        if (
            numbers.content is Content.LISTS
            and not numbers.null_adjustment
            and numbers.extent.length
        ):
            raise _corrupt(container, "the lists of a page have no mark for nulls")
        yield numbers


def _numbers(
    container: Container,
    step: encodings20_pb2.ArrayEncoding,
    page: file2_pb2.ColumnMetadata.Page,
    rows: range | None,
) -> NumberPage | None:
    match step.WhichOneof("array_encoding"):
        case "list":
            content, stored, adjustment = (
                Content.LISTS,
                _buffer(step.list.offsets, page),
                step.list.null_offset_adjustment,
            )
            limit = step.list.num_items
        case "binary":
            content, stored, adjustment = (
                Content.BYTES,
                _buffer(step.binary.indices, page),
                step.binary.null_adjustment,
            )
            values = _buffer(step.binary.bytes, page)
            limit = container.size_bytes if values is None else values[0].length
        case _:
            content, stored, adjustment = (
                Content.WORDS,
                _buffer(step.dictionary.indices, page),
                0,
            )
            words = _buffer(step.dictionary.items.binary.indices, page)
            if words is None:
                return None
            limit = words[0].length // words[1]
    if stored is None:
        return None
    extent, width = stored
    return NumberPage(content, extent, width, rows, limit, adjustment)


def _has_odd_width(step: encodings20_pb2.ArrayEncoding) -> bool:
    """Whether numbers that are stored as they are have a size that numbers cannot have."""
    match step.WhichOneof("array_encoding"):
        case "list":
            numbers = step.list.offsets
        case "binary":
            numbers = step.binary.indices
        case _:
            numbers = step.dictionary.indices
    while numbers.HasField("nullable"):
        numbers = _without_nulls(numbers)
    return numbers.HasField("flat") and numbers.flat.bits_per_value not in _BITS


def _steps(
    encoding: encodings20_pb2.ArrayEncoding, *, is_whole: bool
) -> Iterator[tuple[encodings20_pb2.ArrayEncoding, bool]]:
    """Yield the steps that have numbers, and whether there is one for each row of the page."""
    match encoding.WhichOneof("array_encoding"):
        case "list" | "binary":
            yield encoding, is_whole
        case "nullable":
            yield from _steps(_without_nulls(encoding), is_whole=is_whole)
        case "fsst":
            yield from _steps(encoding.fsst.binary, is_whole=is_whole)
        case "dictionary":
            yield encoding, is_whole
            yield from _steps(encoding.dictionary.items, is_whole=False)
        case "fixed_size_list":
            yield from _steps(encoding.fixed_size_list.items, is_whole=False)
        case _:
            return


def _without_nulls(encoding: encodings20_pb2.ArrayEncoding) -> encodings20_pb2.ArrayEncoding:
    nullable = encoding.nullable
    some = nullable.HasField("some_nulls")
    return nullable.some_nulls.values if some else nullable.no_nulls.values


def _buffer(
    encoding: encodings20_pb2.ArrayEncoding, page: file2_pb2.ColumnMetadata.Page
) -> tuple[Extent, int] | None:
    """Return the buffer of a page that has values as they are, and their size; None for others."""
    if encoding.HasField("nullable"):
        return _buffer(_without_nulls(encoding), page)
    flat = encoding.flat
    if not encoding.HasField("flat") or flat.HasField("compression"):
        return None
    number, bits = flat.buffer.buffer_index, flat.bits_per_value
    if flat.buffer.buffer_type or number >= len(page.buffer_offsets) or bits not in _BITS:
        return None
    return Extent(page.buffer_offsets[number], page.buffer_sizes[number]), bits // 8


def _concerns(page: NumberPage, rows: Rows) -> bool:
    if page.rows is None:
        return bool(rows)
    if isinstance(rows, range):
        return rows.start < page.rows.stop and page.rows.start < rows.stop
    at = bisect_left(rows, page.rows.start)
    return at < len(rows) and rows[at] < page.rows.stop


def _check(container: Container, page: NumberPage) -> None:
    whole = page.extent.length // page.width * page.width
    numbers = np.frombuffer(container.read(Extent(page.extent.start, whole)), f"<u{page.width}")
    if not len(numbers):
        return
    highest = int(numbers.max())
    if page.content is Content.WORDS:
        if highest > page.limit:
            raise _corrupt(container, "a page has words that its dictionary lacks")
        return
    # As the codec does.
    if highest >= page.null_adjustment:
        if page.content is Content.LISTS:
            numbers = numbers % np.uint64(page.null_adjustment)
        else:
            adjustment = np.uint64(page.null_adjustment)
            numbers = np.where(numbers >= adjustment, numbers - adjustment, numbers)
    if numbers[-1] > page.limit or (numbers[1:] < numbers[:-1]).any():
        raise _corrupt(container, "the offsets of a page are not in order")


def _corrupt(container: Container, problem: str) -> CorruptTableError:
    name = container.source.name
    return CorruptTableError(f"data file {name} cannot be read: {problem}", path=name)
