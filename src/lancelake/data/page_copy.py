"""Can data files be put behind each other page by page, without decoding a value?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from lancelake.data.column_transplant import file_tail
from lancelake.data.container import Container
from lancelake.proto import file2_pb2, file_pb2
from lancelake.storage.store import ObjectStore

_ALIGNMENT = 64
_CHUNK_BYTES = 8 << 20
LARGE_PAGE_BYTES = 1 << 20
"""From this size on, a page is read about as fast as any larger one."""

Columns = list[file2_pb2.ColumnMetadata]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCopy:
    """Files with the same columns, and how many of their first bytes hold the pages."""

    containers: tuple[Container, ...]
    columns: tuple[Columns, ...]
    sizes: tuple[int, ...]

    @property
    def large_share(self) -> float:
        """The part of all bytes that lies in pages of a size that is good to read."""
        pages = [_page_bytes(p) for part in self.columns for c in part for p in c.pages]
        total = sum(pages)
        return sum(size for size in pages if size >= LARGE_PAGE_BYTES) / total if total else 0.0

    def write(self, store: ObjectStore, path: str) -> int:
        """Write one file with the pages of all, and return its size."""
        tail = self._tail()
        store.put_stream(path, self._chunks(tail))
        return self._ends[-1] + len(tail)

    def write_local(self, path: Path) -> int:
        """Do the same to a local file that need not last, and return its size."""
        with path.open("wb") as file:
            file.writelines(self._chunks(self._tail()))
            return file.tell()

    @property
    def _ends(self) -> list[int]:
        """Where the pages of each file end in the new one."""
        return list(accumulate(_aligned(size) for size in self.sizes))

    def _chunks(self, tail: bytes) -> Iterator[bytes]:
        for container, size in zip(self.containers, self.sizes, strict=True):
            for start in range(0, size, _CHUNK_BYTES):
                yield container.source.read(start, min(_CHUNK_BYTES, size - start))
            yield bytes(_aligned(size) - size)
        yield tail

    def _tail(self) -> bytes:
        descriptors = [container.descriptor() for container in self.containers]
        rows = [descriptor.length for descriptor in descriptors]
        starts = [0, *self._ends[:-1]]
        rows_before = [0, *accumulate(rows)]
        joined: Columns = []
        for n in range(len(self.columns[0])):
            column = file2_pb2.ColumnMetadata(encoding=self.columns[0][n].encoding)
            for part, start, before in zip(self.columns, starts, rows_before, strict=False):
                column.pages.extend(_moved(page, start, before) for page in part[n].pages)
            joined.append(column)
        descriptor = file_pb2.FileDescriptor(schema=descriptors[0].schema, length=sum(rows))
        version = self.containers[0].version_numbers
        return file_tail(self._ends[-1], joined, descriptor, version)


def page_copy(containers: Sequence[Container]) -> PageCopy | None:
    """Plan a copy; None where pages cannot be taken over as they are.

    Columns of blobs must not be among them: they lead to other places of their file.
    """
    first = containers[0]
    schema = first.descriptor().schema
    if not first.version.leaves_only or any(
        len(container.global_buffers) != 1
        or container.version_numbers != first.version_numbers
        or container.num_columns != first.num_columns
        or container.descriptor().schema != schema
        for container in containers
    ):
        return None
    columns = tuple([c.column(n) for n in range(c.num_columns)] for c in containers)
    if not all(
        _is_movable(a, b) for part in columns for a, b in zip(part, columns[0], strict=True)
    ):
        return None
    sizes = tuple(_end(part) for part in columns)
    return PageCopy(containers=tuple(containers), columns=columns, sizes=sizes)


def _is_movable(column: file2_pb2.ColumnMetadata, like: file2_pb2.ColumnMetadata) -> bool:
    """Whether a column consists of pages that only their buffers tie to their place."""
    return (
        not column.buffer_offsets
        and column.encoding == like.encoding
        and column.encoding.WhichOneof("location") != "indirect"
        and all(page.encoding.WhichOneof("location") == "direct" for page in column.pages)
    )


def _moved(
    page: file2_pb2.ColumnMetadata.Page, start: int, rows_before: int
) -> file2_pb2.ColumnMetadata.Page:
    moved = file2_pb2.ColumnMetadata.Page()
    moved.CopyFrom(page)
    moved.buffer_offsets[:] = [offset + start for offset in page.buffer_offsets]
    moved.priority = page.priority + rows_before
    return moved


def _end(columns: Columns) -> int:
    """Return where the last buffer ends."""
    ends = (
        offset + size
        for column in columns
        for page in column.pages
        for offset, size in zip(page.buffer_offsets, page.buffer_sizes, strict=True)
    )
    return max(ends, default=0)


def _page_bytes(page: file2_pb2.ColumnMetadata.Page) -> int:
    return sum(page.buffer_sizes)


def _aligned(size: int) -> int:
    return size + -size % _ALIGNMENT
