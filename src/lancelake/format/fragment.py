"""Fragments of a table, their files, the formats of these, and where they may be stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from google.protobuf.message import DecodeError

from lancelake.errors import CorruptTableError, UnsupportedError
from lancelake.format.frozen import Codec, restore_unknown, unknown_bytes
from lancelake.format.ids import MAX_FRAGMENT_ID, MAX_ROWS, BaseId, FieldId, FragmentId
from lancelake.proto import table_pb2
from lancelake.proto.transaction_pb2 import Transaction


class FileVersion(Enum):
    """A data file format."""

    LEGACY = "0.1"
    V2_0 = "2.0"
    V2_1 = "2.1"
    V2_2 = "2.2"
    V2_3 = "2.3"

    @property
    def numbers(self) -> tuple[int, int]:
        """Major and minor as `DataFile` records them."""
        return _NUMBERS[self]

    @property
    def leaves_only(self) -> bool:
        """Whether only nodes that own a column are listed in `DataFile.fields`."""
        return self not in (FileVersion.LEGACY, FileVersion.V2_0)


UNNAMED_VERSION = FileVersion.V2_0
"""Version of the files of a table whose manifest has a flag for them, but no name."""
DEFAULT_VERSION = FileVersion.V2_1

_NUMBERS = {
    FileVersion.LEGACY: (0, 2),
    FileVersion.V2_0: (2, 0),
    FileVersion.V2_1: (2, 1),
    FileVersion.V2_2: (2, 2),
    FileVersion.V2_3: (2, 3),
}
_BY_NUMBERS = {
    (0, 0): FileVersion.LEGACY,
    (0, 1): FileVersion.LEGACY,
    (0, 2): FileVersion.LEGACY,
    (0, 3): FileVersion.V2_0,
    (2, 0): FileVersion.V2_0,
    (2, 1): FileVersion.V2_1,
    (2, 2): FileVersion.V2_2,
    (2, 3): FileVersion.V2_3,
}
_BY_NAME = {version.value: version for version in FileVersion} | {
    "0.3": FileVersion.V2_0,
    "legacy": FileVersion.LEGACY,
    "stable": DEFAULT_VERSION,
    "next": FileVersion.V2_2,
}


def version_from_name(name: str) -> FileVersion:
    """Read the version string of `Manifest.data_format`."""
    try:
        return _BY_NAME[name.lower()]
    except KeyError:
        msg = f"Unknown Lance storage version: {name}"
        raise UnsupportedError(msg, found=name) from None


def version_from_numbers(major: int, minor: int) -> FileVersion:
    """Read the version numbers of a `DataFile`."""
    try:
        return _BY_NUMBERS[(major, minor)]
    except KeyError:
        msg = f"unknown data file version {major}.{minor}"
        raise UnsupportedError(msg, found=f"{major}.{minor}") from None


def only_version(versions: set[FileVersion]) -> FileVersion:
    """Return the one version that all files share."""
    if len(versions) == 1:
        return next(iter(versions))
    names = ", ".join(sorted(v.value for v in versions))
    msg = f"data files of different versions ({names}) in a table without a data file version"
    raise CorruptTableError(msg, found=names)


@dataclass(frozen=True, slots=True, kw_only=True)
class BasePath:
    """A declared base path."""

    id: BaseId
    name: str | None = None
    is_dataset_root: bool
    path: str
    unknown: bytes = b""


BASE = Codec(BasePath, table_pb2.BasePath)


class DeletionFileType(Enum):
    """Encodings of deletion files; the value is the file's suffix."""

    ARROW_ARRAY = "arrow"
    BITMAP = "bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A file with some columns of a fragment."""

    path: str
    fields: tuple[FieldId, ...]
    column_indices: tuple[int, ...] = ()
    file_major_version: int
    file_minor_version: int
    file_size_bytes: int | None = None
    base_id: BaseId | None = None
    unknown: bytes = b""

    @property
    def version(self) -> FileVersion:
        """The format of the file."""
        return version_from_numbers(self.file_major_version, self.file_minor_version)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionFile:
    """A file that lists deleted rows of a fragment."""

    file_type: DeletionFileType
    read_version: int
    id: int
    num_deleted_rows: int | None = None
    base_id: BaseId | None = None
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalFile:
    """A slice of a file with metadata that is not inline."""

    path: str
    offset: int
    size: int


Sequenced = bytes | ExternalFile | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """A part of the table's rows, and the files with their columns."""

    id: FragmentId
    files: tuple[DataFile, ...]
    deletion_file: DeletionFile | None = None
    row_ids: Sequenced = None
    last_updated_at_versions: Sequenced = None
    created_at_versions: Sequenced = None
    physical_rows: int | None = None
    unknown: bytes = b""

    @property
    def num_deleted_rows(self) -> int | None:
        """Number of deleted rows, None when only the deletion file has it."""
        return 0 if self.deletion_file is None else self.deletion_file.num_deleted_rows

    @property
    def live_rows(self) -> int | None:
        """Number of live rows, None when the manifest does not state it."""
        deleted = self.num_deleted_rows
        if self.physical_rows is None or deleted is None:
            return None
        return self.physical_rows - deleted


def decode(message: table_pb2.DataFragment, *, trust_counts: bool = True) -> Fragment:
    """Decode a fragment; counts of writers with known errors become None."""
    deletion = message.deletion_file if message.HasField("deletion_file") else None
    ensure_understood(message)
    return Fragment(
        id=FragmentId(message.id),
        files=tuple(decode_data_file(f) for f in message.files),
        deletion_file=_decode_deletion(deletion, trust_counts=trust_counts) if deletion else None,
        row_ids=_sequence(message, "row_id_sequence"),
        last_updated_at_versions=_sequence(message, "last_updated_at_version_sequence"),
        created_at_versions=_sequence(message, "created_at_version_sequence"),
        physical_rows=(message.physical_rows or None) if trust_counts else None,
        unknown=unknown_bytes(message),
    )


def ensure_understood(message: table_pb2.DataFragment) -> None:
    """Raise for a fragment with too many rows, or an invalid deletion file."""
    if message.id > MAX_FRAGMENT_ID or message.physical_rows > MAX_ROWS:
        msg = f"fragment {message.id} of {message.physical_rows} rows cannot be addressed"
        raise CorruptTableError(msg, fragment=message.id)
    if message.HasField("deletion_file"):
        _decode_deletion_type(message.deletion_file.file_type)


def encode(fragment: Fragment) -> table_pb2.DataFragment:
    """Write a fragment."""
    message = table_pb2.DataFragment(
        id=fragment.id,
        files=[encode_data_file(f) for f in fragment.files],
        physical_rows=fragment.physical_rows or 0,
    )
    if fragment.deletion_file is not None:
        message.deletion_file.CopyFrom(_encode_deletion(fragment.deletion_file))
    _put_sequence(message, "row_ids", fragment.row_ids)
    _put_sequence(message, "last_updated_at_versions", fragment.last_updated_at_versions)
    _put_sequence(message, "created_at_versions", fragment.created_at_versions)
    restore_unknown(message, fragment.unknown)
    return message


def decode_data_file(message: table_pb2.DataFile) -> DataFile:
    """Read a data file entry."""
    return DataFile(
        path=message.path,
        fields=tuple(FieldId(f) for f in message.fields),
        column_indices=tuple(message.column_indices),
        file_major_version=message.file_major_version,
        file_minor_version=message.file_minor_version,
        file_size_bytes=message.file_size_bytes or None,
        base_id=BaseId(message.base_id) if message.HasField("base_id") else None,
        unknown=unknown_bytes(message),
    )


def encode_data_file(file: DataFile) -> table_pb2.DataFile:
    """Write a data file entry."""
    message = table_pb2.DataFile(
        path=file.path,
        fields=file.fields,
        column_indices=file.column_indices,
        file_major_version=file.file_major_version,
        file_minor_version=file.file_minor_version,
        file_size_bytes=file.file_size_bytes or 0,
        base_id=file.base_id,
    )
    restore_unknown(message, file.unknown)
    return message


def _decode_deletion(message: table_pb2.DeletionFile, *, trust_counts: bool) -> DeletionFile:
    return DeletionFile(
        file_type=_decode_deletion_type(message.file_type),
        read_version=message.read_version,
        id=message.id,
        num_deleted_rows=(message.num_deleted_rows or None) if trust_counts else None,
        base_id=BaseId(message.base_id) if message.HasField("base_id") else None,
        unknown=unknown_bytes(message),
    )


def _decode_deletion_type(value: int) -> DeletionFileType:
    match value:
        case table_pb2.DeletionFile.ARROW_ARRAY:
            return DeletionFileType.ARROW_ARRAY
        case table_pb2.DeletionFile.BITMAP:
            return DeletionFileType.BITMAP
        case _:
            msg = f"unknown deletion file type {value}"
            raise UnsupportedError(msg, found=value)


def _encode_deletion(deletion: DeletionFile) -> table_pb2.DeletionFile:
    is_bitmap = deletion.file_type is DeletionFileType.BITMAP
    kinds = table_pb2.DeletionFile
    message = table_pb2.DeletionFile(
        file_type=kinds.BITMAP if is_bitmap else kinds.ARROW_ARRAY,
        read_version=deletion.read_version,
        id=deletion.id,
        num_deleted_rows=deletion.num_deleted_rows or 0,
        base_id=deletion.base_id,
    )
    restore_unknown(message, deletion.unknown)
    return message


def _sequence(message: table_pb2.DataFragment, choice: str) -> Sequenced:
    case = message.WhichOneof(choice)
    if case is None:
        return None
    value = getattr(message, case)
    if isinstance(value, bytes):
        return value
    return ExternalFile(path=value.path, offset=value.offset, size=value.size)


def _put_sequence(message: table_pb2.DataFragment, suffix: str, value: Sequenced) -> None:
    if isinstance(value, bytes):
        setattr(message, f"inline_{suffix}", value)
    elif isinstance(value, ExternalFile):
        target = getattr(message, f"external_{suffix}")
        target.path, target.offset, target.size = value.path, value.offset, value.size


_FORMAT = b"\x01"


def to_bytes(fragments: Iterable[Fragment]) -> bytes:
    """Encode fragments; the first byte is the format."""
    message = Transaction.Append(fragments=[encode(f) for f in fragments])
    return _FORMAT + message.SerializeToString()


def from_bytes(data: bytes) -> tuple[Fragment, ...]:
    """Decode the output of `to_bytes`."""
    if data[:1] != _FORMAT:
        raise CorruptTableError("fragments of a worker have an unknown format")
    try:
        message = Transaction.Append.FromString(data[1:])
    except DecodeError as error:
        raise CorruptTableError("fragments of a worker cannot be decoded") from error
    return tuple(decode(f) for f in message.fragments)
