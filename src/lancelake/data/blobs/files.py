"""Writing of blobs: small ones into the data file, larger ones into files beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.data.codec.address import CodecAddress, writing
from lancelake.data.codec.official import file_session
from lancelake.data.file_schema import PREPARED_BLOB
from lancelake.errors import (
    InvalidRequestError,
    InvalidRequestOSError,
    LanceTableError,
    SchemaMismatchError,
)
from lancelake.format.bases import BasePath
from lancelake.format.blobs import BlobKind, has_blobs, side_file
from lancelake.format.column_path import quote_segment
from lancelake.format.schema import Field, Schema
from lancelake.storage import disk_sync
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt

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


def ensure_same_limits(table: Schema, data: pa.Schema) -> None:
    """Raise if data states other size limits of a blob column than the table has."""
    for column in filter(has_blobs, table.fields):
        place = data.get_field_index(column.name)
        stated_limits = (data.field(place).metadata if place >= 0 else None) or {}
        mine = BlobLimits.of(column)
        for name in ("inline", "dedicated", "pack-file"):
            key = f"lance-encoding:blob-{name}-size-threshold"
            limit = getattr(mine, name.replace("-", "_"))
            stated = stated_limits.get(key.encode())
            if stated is not None and stated != str(limit).encode():
                raise InvalidRequestOSError(
                    f"Cannot append data with blob threshold metadata {key}={stated.decode()} for "
                    f"field {column.name!r}; the table has {limit}",
                    column=column.name,
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
        sizes = _numbers(pc.binary_length(data))
        is_dedicated = has_data & (sizes > limits.dedicated)
        is_packed = has_data & (sizes > limits.inline) & ~is_dedicated
        ids, positions = np.zeros((2, len(values)), np.uint64)
        for row in np.flatnonzero(is_dedicated | is_packed).tolist():
            value = data[row].as_py()
            if is_dedicated[row]:
                ids[row] = self._dedicated(value)
            else:
                ids[row], positions[row] = self._packed(value, limits)
        placed = self._external(column, uris, is_external)
        if placed:
            shown = uris.to_pylist()
            for row, (base, path) in placed.items():
                ids[row], shown[row] = base, path
            uris = pa.array(shown, uris.type)
        choices = [is_packed, is_dedicated, is_external]
        elsewhere = [BlobKind.PACKED, BlobKind.DEDICATED, BlobKind.EXTERNAL]
        kinds = np.select(choices, elsewhere, BlobKind.INLINE)
        sizes = np.where(is_external, _numbers(values.field("size")), sizes)
        positions = np.where(is_external, _numbers(values.field("position")), positions)
        is_inline = has_data & ~is_packed & ~is_dedicated
        has_no_place = is_inline | is_null
        members = {
            "kind": pa.array(kinds, pa.uint8(), mask=is_null),
            "data": pc.if_else(pa.array(is_inline), data, pa.scalar(None, data.type)),
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
        self._close_pack()

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
            raise SchemaMismatchError(msg, path=where)

    def _external(self, column: Field, uris: pa.Array, is_external: Mask) -> dict[int, _Place]:
        """Return the places of blobs that are below a base; others must be allowed."""
        found: dict[int, _Place] = {}
        for row in np.flatnonzero(is_external).tolist():
            uri = uris[row].as_py()
            place = stored_place(uri, self.bases) if self.bases else None
            if place is not None:
                found[row] = place
            elif not self.allow_external:
                raise _outside_of_bases(column.name, uri)
        return found


def _ensure_ranges(column: Field, values: pa.StructArray, is_external: Mask) -> None:
    """Refuse incomplete and empty ranges, and ranges of blobs that are no objects elsewhere."""
    begins, ends = (_mask(values.field(name).is_valid()) for name in ("position", "size"))
    is_whole = ~begins & ~ends
    is_range = is_external & begins & ends & (_numbers(values.field("size")) > 0)
    is_null = _mask(values.is_null())
    if not (is_null | is_whole | is_range).all():
        where = quote_segment(column.name)
        msg = (
            f"a range of a blob of column {where} must have a uri, and both a position and a size, "
            "which must be greater than zero"
        )
        raise SchemaMismatchError(msg, path=where)


def _limit(column: Field, name: str, default: int) -> int:
    value = column.metadata.get(f"lance-encoding:blob-{name}-size-threshold")
    return default if value is None or not value.isdigit() else int(value)


def _mask(array: pa.Array) -> Mask:
    return np.asarray(array.to_numpy(zero_copy_only=False), np.bool_)


def _numbers(array: pa.Array) -> npt.NDArray[np.uint64]:
    filled = array.cast(pa.uint64()).fill_null(0)
    return np.asarray(filled.to_numpy(zero_copy_only=False), np.uint64)


def stored_place(uri: str, bases: Sequence[BasePath]) -> tuple[int, str] | None:
    """Return the id of the base that has an object, and its path there; None if none has it."""
    try:
        place = Location.parse(uri).uri
    except LanceTableError:
        return None  # a place that cannot be opened is below none
    for base in bases:
        root = Location.parse(base.path).uri.rstrip("/") + "/"
        if place.startswith(root):
            return int(base.id), place.removeprefix(root)
    return None


def _outside_of_bases(column: str, uri: str) -> InvalidRequestError:
    """Return the error for an object that is below no declared base path."""
    where = quote_segment(column)
    problem = f"blob {uri!r} of column {where} is outside registered external bases"
    action = "Write its bytes, or pass allow_external_blob_outside_bases=True."
    return InvalidRequestError(problem, column=where, action=action)
