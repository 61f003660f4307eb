"""Blobs: values to write, and files to read."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, Protocol

import pyarrow as pa

from lancelake.core.values.metadata import BLOB_V2
from lancelake.data.codec import readers
from lancelake.data.codec.official import blob_member
from lancelake.errors import InvalidRequestError
from lancelake.pylance._values.opened import call_text

__all__ = [
    "DEFAULT_BLOB_BUFFER_SIZE",
    "Blob",
    "BlobArray",
    "BlobColumn",
    "BlobFile",
    "BlobIterator",
    "BlobType",
    "blob_array",
    "blob_field",
]

DEFAULT_BLOB_BUFFER_SIZE = 512 * 1024
_OF_CODEC = ("BlobDescriptor", "BlobDescriptorArrayBuilder")
"""Values of file sessions, loaded with the codec."""
_MOST_BYTES = (1 << 64) - 1
_FULL = pa.struct(
    [
        pa.field("data", pa.large_binary()),
        pa.field("uri", pa.string()),
        pa.field("position", pa.uint64()),
        pa.field("size", pa.uint64()),
    ]
)
_SHORT = pa.struct(list(_FULL)[:2])


@dataclass(frozen=True)
class Blob:
    """A value to write: bytes, or the location of a blob outside the table."""

    data: bytes | None = None
    uri: str | None = None
    position: int | None = None
    size: int | None = None

    def __post_init__(self) -> None:
        if self.data is None and self.uri is None:
            raise InvalidRequestError("a blob must set `data` or `uri`; use None for a null")
        if self.data is not None and self.uri is not None:
            raise InvalidRequestError("a blob cannot have both data and uri")
        if self.uri == "":
            raise InvalidRequestError("the uri of a blob cannot be empty")
        if (self.position is None) != (self.size is None):
            raise InvalidRequestError(
                "a range of an external blob needs both a position and a size"
            )
        if self.position is not None and self.uri is None:
            raise InvalidRequestError("only an external blob has a position and a size")
        if self.size == 0:
            raise InvalidRequestError("the size of a range of a blob must be greater than zero")
        if (self.position or 0) < 0 or (self.size or 0) < 0:
            raise InvalidRequestError("position and size of a blob cannot be negative")

    @staticmethod
    def from_bytes(data: bytes | bytearray | memoryview) -> Blob:
        """Return a blob of these bytes."""
        return Blob(data=bytes(data))

    @staticmethod
    def from_uri(uri: str, position: int | None = None, size: int | None = None) -> Blob:
        """Return a blob that is a file outside the table, or a range of one."""
        return Blob(uri=uri, position=position, size=size)

    @staticmethod
    def empty() -> Blob:
        """Return a blob of no bytes."""
        return Blob(data=b"")


class BlobType(pa.ExtensionType):  # type: ignore[misc]  # pyarrow has no types
    """Type of a blob v2 column."""

    def __init__(self, storage_type: pa.DataType = _FULL) -> None:
        super().__init__(storage_type, BLOB_V2)

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> BlobType:
        if storage_type not in (_FULL, _SHORT):
            msg = (
                "BlobType storage must have data and uri, and optionally position and size, "
                f"not {storage_type}"
            )
            raise TypeError(msg)
        return cls(storage_type)

    def __arrow_ext_class__(self) -> type[BlobArray]:
        return BlobArray

    def __reduce__(self) -> tuple[Any, ...]:
        return BlobType.__arrow_ext_deserialize__, (self.storage_type, b"")


class BlobArray(pa.ExtensionArray):  # type: ignore[misc]  # pyarrow has no types
    """Values of a column of blobs."""

    @classmethod
    def from_pylist(cls, values: Sequence[Any]) -> BlobArray:
        """Build an array of bytes, URIs (as text), `Blob` values and nulls."""
        blobs = [_as_blob(value) for value in values]
        members = [
            pa.array([getattr(blob, field.name, None) for blob in blobs], field.type)
            for field in _FULL
        ]
        mask = pa.array([blob is None for blob in blobs], pa.bool_())
        storage = pa.StructArray.from_arrays(members, fields=list(_FULL), mask=mask)
        array: BlobArray = pa.ExtensionArray.from_storage(BlobType(), storage)
        return array


def blob_array(values: Sequence[Any]) -> BlobArray:
    """Build an array of bytes, URIs (as text), `Blob` values and nulls."""
    return BlobArray.from_pylist(values)


def blob_field(
    name: str,
    *,
    nullable: bool = True,
    inline_size_threshold: int | None = None,
    dedicated_size_threshold: int | None = None,
    pack_file_size_threshold: int | None = None,
) -> pa.Field:
    """Describe a blob column; blobs above the size limits are stored outside the data file."""
    limits = {
        "inline": _limit("inline_size_threshold", inline_size_threshold, least=0),
        "dedicated": _limit("dedicated_size_threshold", dedicated_size_threshold, least=1),
        "pack-file": _limit("pack_file_size_threshold", pack_file_size_threshold, least=1),
    }
    metadata = {
        f"lance-encoding:blob-{kind}-size-threshold": str(limit)
        for kind, limit in limits.items()
        if limit is not None
    }
    return pa.field(name, BlobType(), nullable=nullable, metadata=metadata or None)


class BlobIterator:
    """Iterates over a binary column as files."""

    def __init__(self, binary_iter: Iterator[pa.Scalar]) -> None:
        self.binary_iter = binary_iter

    def __repr__(self) -> str:
        return call_text(self, self.binary_iter)

    def __iter__(self) -> BlobIterator:
        return self

    def __next__(self) -> IO[bytes] | None:
        value = next(self.binary_iter).as_py()
        return None if value is None else io.BytesIO(value)


class BlobColumn:
    """A binary column as files."""

    def __init__(self, blob_column: pa.Array | pa.ChunkedArray) -> None:
        if not isinstance(blob_column, pa.Array | pa.ChunkedArray):
            kind = type(blob_column)
            raise InvalidRequestError(
                f"Expected a pyarrow.Array or pyarrow.ChunkedArray, got {kind}"
            )
        dtype = blob_column.type
        if not (pa.types.is_binary(dtype) or pa.types.is_large_binary(dtype)):
            raise InvalidRequestError(f"Expected a binary array, got {dtype}")
        self.blob_column = blob_column

    def __repr__(self) -> str:
        column = self.blob_column
        return call_text(self, length=len(column), nulls=column.null_count)

    def __iter__(self) -> BlobIterator:
        return BlobIterator(iter(self.blob_column))


class BlobBytes(Protocol):
    """Bytes that can be read in ranges."""

    @property
    def size(self) -> int:
        """Number of bytes."""
        ...

    def read(self, start: int, length: int) -> bytes:
        """Return a range of bytes."""
        ...


class BlobFile(io.BufferedIOBase):
    """A blob as a file; data is read on demand."""

    def __init__(self, inner: BlobBytes, buffer_size: int = DEFAULT_BLOB_BUFFER_SIZE) -> None:
        super().__init__()
        self.inner = inner
        self._raw = _RawBlob(inner)
        size = check_buffer_size(buffer_size)
        self._stream = io.BufferedReader(self._raw, size) if size else self._raw

    def close(self) -> None:
        """Refuse further reads."""
        self._stream.close()

    @property
    def closed(self) -> bool:
        """Whether the file is closed."""
        return self._stream.closed

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position."""
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        """Return the position."""
        return self._stream.tell()

    def size(self) -> int:
        """Return the number of bytes."""
        return self.inner.size

    def read(self, size: int | None = -1) -> bytes:
        """Read this many bytes, or all remaining ones."""
        return self._stream.read(-1 if size is None else size) or b""

    def read1(self, size: int = -1) -> bytes:
        """Read with one request at most."""
        return self.read(io.DEFAULT_BUFFER_SIZE if size < 0 else size)

    def readall(self) -> bytes:
        """Read all remaining bytes."""
        return self.read()

    def readinto(self, b: Any) -> int:
        """Fill a buffer."""
        return self._stream.readinto(b) or 0

    def read_range(self, offset: int, length: int) -> bytes:
        """Read bytes at an offset without moving the position."""
        return self.inner.read(offset, length)

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Read several ranges, each an offset and a length, without moving the position."""
        return [self.inner.read(offset, length) for offset, length in ranges]

    def __repr__(self) -> str:
        return f"<BlobFile size={self.size()}>"


class _RawBlob(io.RawIOBase):
    """Reads exactly the requested bytes."""

    def __init__(self, inner: BlobBytes) -> None:
        super().__init__()
        self._inner = inner
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        self._ensure_open()
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._ensure_open()
        if whence not in (io.SEEK_SET, io.SEEK_CUR, io.SEEK_END):
            raise ValueError(f"Invalid whence: {whence}")
        starts = {io.SEEK_SET: 0, io.SEEK_CUR: self._position}
        start = self._inner.size if whence == io.SEEK_END else starts[whence]
        position = start + offset
        if position < 0:
            raise ValueError(f"negative seek value {position}")
        self._position = position
        return position

    def readinto(self, b: Any) -> int:
        self._ensure_open()
        view = memoryview(b).cast("B")
        length = max(0, min(len(view), self._inner.size - self._position))
        if length:
            view[:length] = self._inner.read(self._position, length)
        self._position += length
        return length

    def readall(self) -> bytes:
        self._ensure_open()
        length = max(0, self._inner.size - self._position)
        data = self._inner.read(self._position, length) if length else b""
        self._position += length
        return data

    def _ensure_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file")


def check_buffer_size(buffer_size: int) -> int:
    """Return the read-ahead size, which must be a number of bytes."""
    if isinstance(buffer_size, bool) or not isinstance(buffer_size, int):
        raise TypeError(f"buffer_size must be an int, got {type(buffer_size).__name__}")
    if buffer_size < 0:
        raise InvalidRequestError("buffer_size must be non-negative")
    return buffer_size


def _as_blob(value: Any) -> Blob | None:
    match value:
        case None | Blob():
            return value
        case str():
            return Blob(uri=value)
        case bytes() | bytearray() | memoryview():
            return Blob.from_bytes(value)
        case _:
            msg = f"a blob must be bytes, a URI as text, a Blob or None, not {type(value)}"
            raise TypeError(msg)


def _limit(name: str, value: int | None, *, least: int) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an int, got {type(value).__name__}")
    if value < least:
        kind = "positive" if least else "non-negative"
        raise InvalidRequestError(f"{name} must be {kind}, got {value}")
    if value > _MOST_BYTES:
        raise OverflowError(f"{name} must fit in a Rust usize of 64 bits")
    return value


def _register() -> None:
    """Register the type in pyarrow as ours; the codec package registers its own."""
    assert readers  # imported first, so that ours is registered last
    try:
        pa.register_extension_type(BlobType())
    except pa.ArrowKeyError:
        pa.unregister_extension_type(BLOB_V2)
        pa.register_extension_type(BlobType())


_register()


def __getattr__(name: str) -> Any:
    if name not in _OF_CODEC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return blob_member(name)
