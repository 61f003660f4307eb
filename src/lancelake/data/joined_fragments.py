"""Small fragments read as one, by first gathering their pages in a local file.

Opening a small file takes far longer than copying it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import add
from pathlib import Path

from lancelake.data.codec.file_layout import Container, levels_above_lists, open_container
from lancelake.data.codec.transplant import file_tail
from lancelake.data.column_reader import ByteSource, LoadedSource
from lancelake.errors import CorruptTableError, NotFoundError, StorageError
from lancelake.format import layout
from lancelake.format.fragment import DataFile, Fragment
from lancelake.format.ids import FragmentId
from lancelake.format.layout import data_file_name
from lancelake.format.logical_types import has_blobs
from lancelake.format.schema import Schema
from lancelake.proto import file2_pb2, file_pb2
from lancelake.storage.store import ObjectStore
from lancelake.storage.table_files import TableFiles
from lancelake.threads import Pool

_ALIGNMENT = 64
_CHUNK_BYTES = 8 << 20
LARGE_PAGE_BYTES = 1 << 20
"""Page size from which larger pages are not read faster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PagedFile:
    """Page metadata of a file, whose first `size_bytes` are its pages."""

    version_numbers: tuple[int, int]
    descriptor: file_pb2.FileDescriptor
    columns: tuple[file2_pb2.ColumnMetadata, ...]
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCopy:
    """Files with the same columns."""

    sources: tuple[ByteSource, ...]
    files: tuple[PagedFile, ...]

    @property
    def large_share(self) -> float:
        """Fraction of bytes in pages that are large enough to read fast."""
        pages = [sum(p.buffer_sizes) for file in self.files for c in file.columns for p in c.pages]
        total = sum(pages)
        return sum(size for size in pages if size >= LARGE_PAGE_BYTES) / total if total else 0.0

    def write(self, store: ObjectStore, path: str) -> int:
        """Write one file with the pages of all files, and return its size."""
        tail = self._tail()
        store.put_stream(path, self._chunks(tail))
        return self._ends[-1] + len(tail)

    def write_local(self, path: Path) -> int:
        """Do the same to a temporary local file, and return its size."""
        with path.open("wb") as file:
            file.writelines(self._chunks(self._tail()))
            return file.tell()

    @property
    def _ends(self) -> list[int]:
        """End of each file's pages in the new file."""
        return list(accumulate(_aligned(file.size_bytes) for file in self.files))

    def _chunks(self, tail: bytes) -> Iterator[bytes]:
        for source, file in zip(self.sources, self.files, strict=True):
            size = file.size_bytes
            for start in range(0, size, _CHUNK_BYTES):
                yield source.read(start, min(_CHUNK_BYTES, size - start))
            yield bytes(_aligned(size) - size)
        yield tail

    def _tail(self) -> bytes:
        first = self.files[0]
        ends = self._ends
        starts = [0, *ends[:-1]]
        rows = list(accumulate(file.descriptor.length for file in self.files))
        rows_before = [0, *rows[:-1]]
        joined = []
        for n, like in enumerate(first.columns):
            column = file2_pb2.ColumnMetadata(encoding=like.encoding)
            for file, start, before in zip(self.files, starts, rows_before, strict=True):
                for page in file.columns[n].pages:
                    _add_moved(column, page, start, before)
            joined.append(column)
        descriptor = file_pb2.FileDescriptor(schema=first.descriptor.schema, length=rows[-1])
        return file_tail(ends[-1], joined, descriptor, first.version_numbers)


def page_copy(sources: Iterable[ByteSource]) -> PageCopy | None:
    """Plan a copy; None where pages cannot be copied unchanged.

    Blob columns are not allowed, because they refer to positions in their file.
    """
    every = tuple(sources)
    endings = _KnownEnds()
    files: list[PagedFile] = []
    for source in every:
        file = endings.find(source)
        if file is None:
            file = _paged_file(open_container(source))
            if file is None or not _are_alike(file, files[0] if files else file):
                return None
            endings.add(source, file)
        files.append(file)
    return PageCopy(sources=every, files=tuple(files))


class _KnownEnds:
    """Cache of page metadata: small files of one writer often end in the same bytes."""

    def __init__(self) -> None:
        self._by_size: dict[int, tuple[bytes, PagedFile]] = {}

    def find(self, source: ByteSource) -> PagedFile | None:
        """Return the metadata of another file of the same length and end."""
        if not isinstance(source, LoadedSource):
            return None
        end, file = self._by_size.get(len(source.data), (b"", None))
        return file if source.data.endswith(end) else None

    def add(self, source: ByteSource, file: PagedFile) -> None:
        """Cache the metadata of a file."""
        if isinstance(source, LoadedSource):
            self._by_size[len(source.data)] = source.data[file.size_bytes :], file


def _paged_file(container: Container) -> PagedFile | None:
    """Read the page metadata of a file; None where pages cannot be moved."""
    if not container.version.leaves_only or len(container.global_buffers) != 1:
        return None
    columns = tuple(container.column(n) for n in range(container.num_columns))
    if not all(map(_is_movable, columns)):
        return None
    pages = [page for column in columns for page in column.pages]
    ends = [e for page in pages for e in map(add, page.buffer_offsets, page.buffer_sizes)]
    size_bytes = max(ends, default=0)
    if any(e.start < size_bytes for e in (*container.global_buffers, *container.column_metadata)):
        return None
    return PagedFile(
        version_numbers=container.version_numbers,
        descriptor=container.descriptor(),
        columns=columns,
        size_bytes=size_bytes,
    )


def _are_alike(file: PagedFile, like: PagedFile) -> bool:
    """Whether pages of two files can belong to the same columns."""
    return (
        file.version_numbers == like.version_numbers
        and len(file.columns) == len(like.columns)
        and file.descriptor.schema == like.descriptor.schema
        and all(map(_are_columns_alike, file.columns, like.columns))
    )


def _are_columns_alike(column: file2_pb2.ColumnMetadata, like: file2_pb2.ColumnMetadata) -> bool:
    pages = (*column.pages, *like.pages)
    return column.encoding == like.encoding and len(set(map(levels_above_lists, pages))) <= 1


def _is_movable(column: file2_pb2.ColumnMetadata) -> bool:
    """Whether only the buffers of a column's pages depend on their position."""
    return (
        not column.buffer_offsets
        and column.encoding.WhichOneof("location") != "indirect"
        and all(
            page.encoding.WhichOneof("location") == "direct"
            and len(page.buffer_offsets) == len(page.buffer_sizes)
            for page in column.pages
        )
    )


def _add_moved(
    column: file2_pb2.ColumnMetadata,
    page: file2_pb2.ColumnMetadata.Page,
    start: int,
    rows_before: int,
) -> None:
    moved = column.pages.add()
    moved.CopyFrom(page)
    moved.buffer_offsets[:] = [offset + start for offset in page.buffer_offsets]
    moved.priority += rows_before


def _aligned(size: int) -> int:
    return size + -size % _ALIGNMENT


# Opening a file takes about as long as copying this many bytes.
_SMALL_BYTES = 128 << 10
_REMOTE_READS = 16

FEWEST_JOINED = 8
"""Number of fragments from which joining them is faster."""

MOST_JOINED = 256
"""Number of fragments in one local file."""


def is_small(fragment: Fragment) -> bool:
    """Whether opening the files of a fragment takes longer than copying them."""
    return sum(file.file_size_bytes or _SMALL_BYTES for file in fragment.files) < _SMALL_BYTES


def has_movable_columns(schema: Schema) -> bool:
    """Whether no column has an encoding that depends on its file."""
    nodes = [node for field in schema.fields for node in field.walk()]
    special = any(node.is_json or node.is_packed for node in nodes)
    return not special and not any(has_blobs(field) for field in schema.fields)


def join(files: TableFiles, fragments: Sequence[Fragment], folder: Path) -> Fragment | None:
    """Gather the pages of fragments of one file each in a table folder.

    Return the fragment with all rows; None if pages cannot be copied unchanged, or if a file
    is missing, damaged or differs from its description.
    """
    try:
        plan = page_copy(_loaded(files, fragments))
    except (CorruptTableError, NotFoundError, StorageError):
        # Reading the fragments one by one finds the one with the defect.
        return None
    if plan is None or not _has_described_rows(plan, fragments):
        return None
    name = data_file_name(files.root.session.ids.uuid4())
    size_bytes = plan.write_local(folder / layout.data_file(name))
    return joined_fragment(fragments, name, size_bytes)


def joined_fragment(fragments: Sequence[Fragment], name: str, size_bytes: int) -> Fragment:
    """Describe the file that contains the pages of these fragments."""
    like = fragments[0].files[0]
    entry = DataFile(
        path=name,
        fields=like.fields,
        column_indices=like.column_indices,
        file_major_version=like.file_major_version,
        file_minor_version=like.file_minor_version,
        file_size_bytes=size_bytes,
    )
    rows = sum(fragment.physical_rows or 0 for fragment in fragments)
    return Fragment(id=FragmentId(0), files=(entry,), physical_rows=rows)


def _has_described_rows(plan: PageCopy, fragments: Sequence[Fragment]) -> bool:
    return all(
        file.descriptor.length == fragment.physical_rows
        for file, fragment in zip(plan.files, fragments, strict=True)
    )


def _loaded(files: TableFiles, fragments: Sequence[Fragment]) -> list[LoadedSource]:
    if files.root.scheme in ("file", "memory"):
        return [_load(files, fragment) for fragment in fragments]
    with Pool(_REMOTE_READS) as pool:
        return list(pool.map(lambda fragment: _load(files, fragment), fragments))


def _load(files: TableFiles, fragment: Fragment) -> LoadedSource:
    (file,) = fragment.files
    at = files.data_file(file)
    # A file that is longer than described does not end there, and is refused.
    size_bytes = file.file_size_bytes or 0
    return LoadedSource(at.path, at.store.get_range(at.path, start=0, length=size_bytes))
