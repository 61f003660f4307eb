"""Blobs: files of their own, and reading them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelake import errors
from lancelake.data.arrays.batches import struct_of
from lancelake.data.arrays.conform import BLOB_VALUE, PREPARED_BLOB
from lancelake.data.codec.official import CodecAddress, file_session, writing
from lancelake.format.arrow_schema import storage_field
from lancelake.format.fragment import BasePath, DataFile, Fragment
from lancelake.format.frozen import computed_once
from lancelake.format.ids import BaseId
from lancelake.format.logical_types import BlobKind, has_blobs, side_file
from lancelake.format.schema import Field, Schema, quote_segment
from lancelake.storage import disk_sync
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt, TableFiles
from lancelake.threads import Pool, aside_to_end

if TYPE_CHECKING:
    from lance.file import LanceFileSession

Mask = npt.NDArray[np.bool_]
_Place = tuple[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobLimits:
    """Size limits for inline blobs, packed blobs and pack files."""

    inline: int = 64 * 1024
    dedicated: int = 4 * 1024 * 1024
    pack_file: int = 1024 * 1024 * 1024

    @staticmethod
    def of(column: Field) -> BlobLimits:
        """Read the limits from a column's metadata, as official releases do."""
        default = BlobLimits()
        return BlobLimits(
            inline=_limit(column, "inline", default.inline),
            dedicated=_limit(column, "dedicated", default.dedicated),
            pack_file=_limit(column, "pack-file", default.pack_file),
        )


@dataclass(slots=True, kw_only=True)
class BlobFiles:
    """The files beside one data file."""

    address: CodecAddress
    allow_external: bool = False
    bases: tuple[BasePath, ...] = ()
    """Declared base paths, below which blobs may be stored."""
    _session: LanceFileSession | None = None
    _pack: Any = None  # the codec's writer of packed blobs, whose class is not in lance.file
    _pack_bytes: int = 0
    _ids: list[int] = field(default_factory=list)

    def store(self, column: Field, values: pa.StructArray) -> pa.StructArray:
        """Store blobs (`BLOB_VALUE`) and return their values for the data file."""
        data, uris = values.field("data"), values.field("uri")
        is_null = _mask(values.is_null())
        has_data = _mask(data.is_valid()) & ~is_null
        is_external = _mask(uris.is_valid()) & ~is_null
        self._ensure_allowed(column, has_data, is_external, is_null)
        _ensure_ranges(column, values, is_external)
        limits = BlobLimits.of(column)
        sizes = _number_files(pc.binary_length(data))
        is_dedicated = has_data & (sizes > limits.dedicated)
        is_packed = has_data & (sizes > limits.inline) & ~is_dedicated
        ids, positions = np.zeros((2, len(values)), np.uint64)
        for row in np.flatnonzero(is_dedicated | is_packed).tolist():
            value = data[row].as_py()
            if is_dedicated[row]:
                ids[row] = aside_to_end(self._dedicated, value)
            else:
                ids[row], positions[row] = aside_to_end(self._packed, value, limits)
        placed = self._external(column, uris, is_external)
        if placed:
            shown = uris.to_pylist()
            for row, (base, path) in placed.items():
                ids[row], shown[row] = base, path
            uris = pa.array(shown, uris.type)
        choices = [is_packed, is_dedicated, is_external]
        elsewhere = [BlobKind.PACKED, BlobKind.DEDICATED, BlobKind.EXTERNAL]
        kinds = np.select(choices, elsewhere, BlobKind.INLINE)
        sizes = np.where(is_external, _number_files(values.field("size")), sizes)
        positions = np.where(is_external, _number_files(values.field("position")), positions)
        is_inline = has_data & ~is_packed & ~is_dedicated
        has_no_place = is_inline | is_null
        members = {
            "kind": pa.array(kinds, pa.uint8(), mask=is_null),
            # `if_else` with a null makes invalid arrays before pyarrow 24.
            "data": data.take(pa.array(np.arange(len(data)), mask=~is_inline)),
            "uri": uris,
            "blob_id": pa.array(ids, pa.uint32(), mask=has_no_place),
            "blob_size": pa.array(sizes, pa.uint64(), mask=has_no_place),
            "position": pa.array(positions, pa.uint64(), mask=has_no_place),
        }
        arrays = [members[member.name] for member in PREPARED_BLOB]
        return pa.StructArray.from_arrays(
            arrays, fields=list(PREPARED_BLOB), mask=pa.array(is_null)
        )

    def finish(self) -> None:
        """Flush open files; `settle` must follow."""
        if self._pack is not None:
            aside_to_end(self._close_pack)

    def places(self) -> list[FileAt]:
        """Return the places of all files."""
        return [self._side_file(blob_id).place for blob_id in self._ids]

    def settle(self) -> None:
        """Move every file to its location, durably on local disk."""
        files = [self._side_file(blob_id) for blob_id in self._ids]
        for file in files:
            file.arrived()
        if files and files[0].is_in_place:
            disk_sync.sync_folder(Path(files[0].uri).parent)

    def _dedicated(self, value: bytes) -> int:
        """Write a blob into its own file and return the file's id."""
        blob_id = self._next_id()
        with writing(self.address.place.path):
            writer = self._opened().open_dedicated_blob_writer(self._name, blob_id)
            writer.write(value)
            writer.finish()
        return blob_id

    def _packed(self, value: bytes, limits: BlobLimits) -> tuple[int, int]:
        """Append a blob to a pack file and return the file's id and the blob's position."""
        if self._pack_bytes + len(value) > limits.pack_file:
            self._close_pack()
        with writing(self.address.place.path):
            if self._pack is None:
                self._pack = self._opened().open_packed_blob_writer(self._name, self._next_id())
            self._pack.write_blob(value)
            position = self._pack_bytes
            self._pack_bytes += len(value)
            return int(self._pack.blob_id), position

    def _close_pack(self) -> None:
        if self._pack is not None:
            with writing(self.address.place.path):
                self._pack.finish()
        self._pack, self._pack_bytes = None, 0

    def _next_id(self) -> int:
        self._ids.append(len(self._ids) + 1)
        return self._ids[-1]

    def _opened(self) -> LanceFileSession:
        if self._session is None:
            folder = self.address.uri.rpartition("/")[0]
            self._session = file_session(folder, self.address.storage_options)
        return self._session

    @property
    def _name(self) -> str:
        return self.address.uri.rpartition("/")[2]

    def _side_file(self, blob_id: int) -> CodecAddress:
        place, local = self.address.place, self.address.local
        path = side_file(place.path, blob_id)
        return CodecAddress(
            place=FileAt(root=place.root, path=path),
            local=None if local is None else Path(side_file(str(local.with_suffix("")), blob_id)),
        )

    def _ensure_allowed(self, column: Field, has_data: Mask, is_external: Mask, rest: Mask) -> None:
        where = quote_segment(column.name)
        if (has_data & is_external).any() or not (has_data | is_external | rest).all():
            msg = f"a blob of column {where} must have exactly one of data and uri"
            raise errors.SchemaMismatchError(msg, path=where)

    def _external(self, column: Field, uris: pa.Array, is_external: Mask) -> dict[int, _Place]:
        """Return the places of blobs that are below a base; others must be allowed."""
        places: dict[int, _Place] = {}
        for row in np.flatnonzero(is_external).tolist():
            uri = uris[row].as_py()
            place = stored_place(uri, self.bases) if self.bases else None
            if place is not None:
                places[row] = place
            elif not self.allow_external:
                raise _outside_of_bases(column.name, uri)
        return places


def _ensure_ranges(column: Field, values: pa.StructArray, is_external: Mask) -> None:
    """Refuse incomplete and empty ranges, and ranges of blobs that are no objects elsewhere."""
    begins, ends = (_mask(values.field(name).is_valid()) for name in ("position", "size"))
    is_whole = ~begins & ~ends
    is_range = is_external & begins & ends & (_number_files(values.field("size")) > 0)
    is_null = _mask(values.is_null())
    if not (is_null | is_whole | is_range).all():
        where = quote_segment(column.name)
        msg = (
            f"a range of a blob of column {where} must have a uri, and both a position and a size, "
            "which must be greater than zero"
        )
        raise errors.SchemaMismatchError(msg, path=where)


def _limit(column: Field, name: str, default: int) -> int:
    value = column.metadata.get(f"lance-encoding:blob-{name}-size-threshold")
    return default if value is None or not value.isdigit() else int(value)


def _mask(array: pa.Array) -> Mask:
    return np.asarray(array.to_numpy(zero_copy_only=False), np.bool_)


def _number_files(array: pa.Array) -> npt.NDArray[np.uint64]:
    filled = array.cast(pa.uint64()).fill_null(0)
    return np.asarray(filled.to_numpy(zero_copy_only=False), np.uint64)


def stored_place(uri: str, bases: Sequence[BasePath]) -> tuple[int, str] | None:
    """Return the id of the base that has an object, and its path there; None if none has it."""
    try:
        place = Location.parse(uri).uri
    except errors.LanceTableError:
        return None  # a place that cannot be opened is below none
    for base in bases:
        root = Location.parse(base.path).uri.rstrip("/") + "/"
        if place.startswith(root):
            return int(base.id), place.removeprefix(root)
    return None


def _outside_of_bases(column: str, uri: str) -> errors.InvalidRequestError:
    """Return the error for an object that is below no declared base path."""
    where = quote_segment(column)
    problem = f"blob {uri!r} of column {where} is outside registered external bases"
    action = "Write its bytes, or pass allow_external_blob_outside_bases=True."
    return errors.InvalidRequestError(problem, column=where, action=action)


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
        return self.place.store.head(self.place.path).size_bytes - self.position

    def part(self, start: int, length: int) -> StoredBlob:
        """Return the location of a part of the blob."""
        end = start + length
        if end > _MOST_BYTES:
            msg = f"Blob range offset + length overflowed: offset={start}, length={length}"
            raise errors.InvalidRequestError(msg, start=start, length=length)
        if start < 0 or length < 0 or end > self.size:
            msg = f"Blob range end {end} exceeds blob size {self.size}"
            raise errors.InvalidRequestError(msg, start=start, length=length)
        return StoredBlob(self.place, self.position + start, length)

    def read(self, start: int, length: int) -> bytes:
        """Return a range of the blob's bytes."""
        part = self.part(start, length)
        return self.place.store.get_range(self.place.path, start=part.position, length=length)


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
                raise errors.CorruptTableError(msg, table=self.files.root.uri, path=place.path)

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
        store = first.place.store
        data = memoryview(
            store.get_range(first.place.path, start=first.position, length=end - first.position)
        )
        for row, blob in group:
            start = blob.position - first.position
            out[row] = bytes(data[start : start + blob.size])

    with Pool(max(1, min(_THREADS, len(groups)))) as pool:
        list(pool.map(fetch, groups))
    return out


def _groups(blobs: Sequence[StoredBlob | None]) -> Iterator[Group]:
    """Yield groups of blobs of one file, with their rows, for one read each."""
    by_place: dict[FileAt, Group] = {}
    for row, blob in enumerate(blobs):
        if blob is not None and blob.size:
            by_place.setdefault(blob.place, []).append((row, blob))
    for here in by_place.values():
        group: Group = []
        end = 0
        for row, blob in sorted(here, key=lambda pair: pair[1].position):
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


_BATCH_BYTES = 32 << 20

_Found = list[StoredBlob | None]
Find = Callable[[Field, pa.StructArray], _Found]
"""Locates the blobs of rows from a column's descriptors."""


def value_field(field: Field) -> pa.Field | None:
    """Return the field of a blob value as passed to a writer; None without blobs."""
    if not has_blobs(field):
        return None
    if field.is_blob_v2:
        return storage_field(field).with_type(BLOB_VALUE)
    if field.is_blob_v1:
        return storage_field(field).with_type(pa.large_binary())
    _ensure_plain(field)
    children = [value_field(child) or storage_field(child) for child in field.children]
    return pa.field(field.name, pa.struct(children), field.nullable)


def with_blobs(
    files: TableFiles, fragment: Fragment, schema: Schema, batch: pa.RecordBatch
) -> Iterator[tuple[list[pa.Array], int]]:
    """Yield parts of a batch with values in place of descriptors, and the offset of each part."""
    return with_found_blobs(partial(locate, files, fragment), schema, batch.columns)


def with_found_blobs(
    find: Find, schema: Schema, columns: Sequence[pa.Array]
) -> Iterator[tuple[list[pa.Array], int]]:
    """Same as `with_blobs`, for rows of any fragments."""
    if not any(has_blobs(field) for field in schema.fields):
        yield list(columns), 0
        return
    pairs = list(zip(schema.fields, columns, strict=True))
    located = [_located(find, field, array) for field, array in pairs]
    for start, stop in _spans(len(columns[0]), [blobs for part in located for blobs in part]):
        values = [
            _valued(field, array[start:stop], iter([blobs[start:stop] for blobs in part]))
            for (field, array), part in zip(pairs, located, strict=True)
        ]
        yield values, start


def _located(find: Find, field: Field, array: pa.Array) -> list[_Found]:
    """Locate the blobs of each blob column that a field is or contains."""
    if field.is_blob_v1 or field.is_blob_v2:
        return [find(field, array)]
    if not has_blobs(field):
        return []
    members = enumerate(field.children)
    return [f for i, child in members for f in _located(find, child, array.field(i))]


def _valued(field: Field, array: pa.Array, located: Iterator[_Found]) -> pa.Array:
    """Replace descriptors with values, one blob column after the other."""
    if field.is_blob_v1:
        return pa.array(read_all(next(located)), pa.large_binary())
    if field.is_blob_v2:
        return _references(array, next(located))
    if not has_blobs(field):
        return array
    children = [_valued(child, array.field(i), located) for i, child in enumerate(field.children)]
    fields = [value_field(child) or storage_field(child) for child in field.children]
    return struct_of(children, fields, array)


def _references(descriptors: pa.StructArray, blobs: _Found) -> pa.StructArray:
    """Load bytes stored in the table; references to external blobs are kept."""
    kinds = pc.struct_field(descriptors, "kind").to_pylist()
    is_outside = [
        blob is not None and kind == BlobKind.EXTERNAL
        for kind, blob in zip(kinds, blobs, strict=True)
    ]
    pairs = list(zip(blobs, is_outside, strict=True))
    data = read_all([None if outside else blob for blob, outside in pairs])
    places = [blob if outside else None for blob, outside in pairs]
    ranges = [None if b is None or b.is_whole else (b.position, b.length or 0) for b in places]
    members = [
        pa.array(data, pa.large_binary()),
        pa.array(_uris(descriptors, places), pa.string()),
        pa.array([None if r is None else r[0] for r in ranges], pa.uint64()),
        pa.array([None if r is None else r[1] for r in ranges], pa.uint64()),
    ]
    mask = pa.array([blob is None for blob in blobs])
    return pa.StructArray.from_arrays(members, fields=list(BLOB_VALUE), mask=mask)


def _uris(descriptors: pa.StructArray, places: _Found) -> list[str | None]:
    """Return URIs as stored; one below a base of the table becomes absolute."""
    bases = pc.struct_field(descriptors, "blob_id").to_pylist()
    given = pc.struct_field(descriptors, "blob_uri").to_pylist()
    rows = zip(places, bases, given, strict=True)
    return [None if blob is None else blob.place.uri if base else uri for blob, base, uri in rows]


def _ensure_plain(field: Field) -> None:
    """Refuse nested blobs that the writer does not support."""
    if field.logical_type == "struct":
        return
    where = quote_segment(field.name)
    msg = f"column {where} has blobs inside a {field.logical_type}, which cannot be rewritten"
    raise errors.UnsupportedError(
        msg, action="Compact a table without such a column.", column=where
    )


def _spans(rows: int, columns: Sequence[_Found]) -> Iterator[tuple[int, int]]:
    """Split rows into spans within the byte limit of a batch; a single row may exceed it."""
    start, total = 0, 0
    for row in range(rows):
        size = sum(blob.length or 0 for blobs in columns if (blob := blobs[row]) is not None)
        if row > start and total + size > _BATCH_BYTES:
            yield start, row
            start, total = row, 0
        total += size
    yield start, rows
