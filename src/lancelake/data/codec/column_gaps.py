"""Column indices of data files that do not follow from the schema."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from google.protobuf import any_pb2
from google.protobuf.message import DecodeError

from lancelake.data.codec.container import Container
from lancelake.data.codec.file_layout import ColumnKind, FileLayout, PhysicalColumn
from lancelake.errors import CorruptTableError
from lancelake.proto import encodings20_pb2

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
