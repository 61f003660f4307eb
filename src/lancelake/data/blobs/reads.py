"""Reading of blobs: their locations, and batched reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.errors import CorruptTableError, InvalidRequestError
from lancelake.format.blobs import BlobKind, side_file
from lancelake.format.computed_once import computed_once
from lancelake.format.fragment import DataFile, Fragment
from lancelake.format.ids import BaseId
from lancelake.format.schema import Field
from lancelake.process import ContextThreadPool
from lancelake.storage.open import open_store
from lancelake.storage.table_files import FileAt, TableFiles

# Ranges with a smaller gap are merged into one read.
_GAP_BYTES = 64 << 10
_MOST_AT_ONCE = 8 << 20
_THREADS = 4

# Positions and sizes have 64 bits.
_MOST_BYTES = 2**64 - 1

Group = list[tuple[int, "StoredBlob"]]
Numbers = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class StoredBlob:
    """A blob's range in a file, or the whole file."""

    place: FileAt
    position: int
    length: int | None

    @property
    def is_whole(self) -> bool:
        """Whether the blob is a whole file."""
        return not self.position and not self.length

    @computed_once
    def size(self) -> int:
        """Size of the blob, from the store if the table does not state it."""
        if self.length is not None:
            return self.length
        return open_store(self.place.root).head(self.place.path).size_bytes - self.position

    def part(self, start: int, length: int) -> StoredBlob:
        """Return the location of a part of the blob."""
        end = start + length
        if end > _MOST_BYTES:
            msg = f"Blob range offset + length overflowed: offset={start}, length={length}"
            raise InvalidRequestError(msg, start=start, length=length)
        if start < 0 or length < 0 or end > self.size:
            msg = f"Blob range end {end} exceeds blob size {self.size}"
            raise InvalidRequestError(msg, start=start, length=length)
        return StoredBlob(self.place, self.position + start, length)

    def read(self, start: int, length: int) -> bytes:
        """Return a range of the blob's bytes."""
        part = self.part(start, length)
        return open_store(self.place.root).get_range(
            self.place.path, start=part.position, length=length
        )


def locate(
    files: TableFiles, fragment: Fragment, column: Field, descriptors: pa.StructArray
) -> list[StoredBlob | None]:
    """Find the blobs of some rows of a fragment, None for nulls, without reading them."""
    file = next((file for file in fragment.files if column.id in file.fields), None)
    if file is None:
        return [None] * len(descriptors)
    is_valid = descriptors.is_valid().to_numpy(zero_copy_only=False)
    sizes, positions = _numbers(descriptors, "size"), _numbers(descriptors, "position")
    if column.is_blob_v1:
        # A null of a 2.0 file: size 0 at a position that no value has.
        is_valid = is_valid & ~((sizes == 0) & (positions != 0))
        place = files.data_file(file)
        return [
            StoredBlob(place, position, size) if valid else None
            for valid, position, size in zip(
                is_valid.tolist(), positions.tolist(), sizes.tolist(), strict=True
            )
        ]
    finder = _Finder(files, file)
    members = (pc.struct_field(descriptors, name).to_pylist() for name in ("kind", "blob_id"))
    uris = pc.struct_field(descriptors, "blob_uri").to_pylist()
    rows = zip(*members, positions.tolist(), sizes.tolist(), uris, strict=True)
    return [
        finder.find(*row) if valid else None
        for valid, row in zip(is_valid.tolist(), rows, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Finder:
    """Finds the blobs of encoding v2 of one data file."""

    files: TableFiles
    file: DataFile

    def find(self, kind: int, blob_id: int, position: int, size: int, uri: str) -> StoredBlob:
        """Return the location of a descriptor's blob."""
        place = self.files.data_file(self.file)
        beside = FileAt(root=place.root, path=side_file(place.path, blob_id))
        match kind:
            case BlobKind.INLINE:
                return StoredBlob(place, position, size)
            case BlobKind.PACKED:
                return StoredBlob(beside, position, size)
            case BlobKind.DEDICATED:
                return StoredBlob(beside, 0, size)
            case BlobKind.EXTERNAL:
                return StoredBlob(self._external(blob_id, uri), position, size or None)
            case _:
                msg = f"a blob of data file {place.path} has the unknown kind {kind}"
                raise CorruptTableError(msg, table=self.files.root.uri, path=place.path)

    def _external(self, base_id: int, uri: str) -> FileAt:
        """Return the location of a file outside the table."""
        if base_id:
            return self.files.below_base(BaseId(base_id), uri)
        return self.files.named_by_blob(uri)


def read_all(blobs: Sequence[StoredBlob | None]) -> list[bytes | None]:
    """Read whole blobs, merging reads of neighbours."""
    out: list[bytes | None] = [None if blob is None else b"" for blob in blobs]
    groups = list(_groups(blobs))

    def fetch(group: Group) -> None:
        first = group[0][1]
        end = max(blob.position + blob.size for _, blob in group)
        store = open_store(first.place.root)
        data = memoryview(
            store.get_range(first.place.path, start=first.position, length=end - first.position)
        )
        for row, blob in group:
            start = blob.position - first.position
            out[row] = bytes(data[start : start + blob.size])

    with ContextThreadPool(max(1, min(_THREADS, len(groups)))) as pool:
        list(pool.map(fetch, groups))
    return out


def _groups(blobs: Sequence[StoredBlob | None]) -> Iterator[Group]:
    """Yield groups of blobs of one file, with their rows, for one read each."""
    by_place: dict[FileAt, Group] = {}
    for row, blob in enumerate(blobs):
        if blob is not None and blob.size:
            by_place.setdefault(blob.place, []).append((row, blob))
    for found in by_place.values():
        group: Group = []
        end = 0
        for row, blob in sorted(found, key=lambda pair: pair[1].position):
            after = blob.position + blob.size
            if group and (
                blob.position > end + _GAP_BYTES or after - group[0][1].position > _MOST_AT_ONCE
            ):
                yield group
                group, end = [], 0
            group.append((row, blob))
            end = max(end, after)
        yield group


def _numbers(descriptors: pa.StructArray, name: str) -> Numbers:
    filled = pc.struct_field(descriptors, name).fill_null(0)
    return np.asarray(filled.to_numpy(zero_copy_only=False), np.uint64)
