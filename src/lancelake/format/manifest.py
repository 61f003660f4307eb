"""Manifest of a version: its content, its feature flags, and its file."""

from __future__ import annotations

import functools
import re
import struct
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntFlag
from typing import Literal, NamedTuple

from google.protobuf.message import Message

from lancelake.clock import utc_from_ns
from lancelake.errors import CorruptTableError, UnsupportedError
from lancelake.format import fragment
from lancelake.format.fragment import BasePath, FileVersion, Fragment
from lancelake.format.fragment_list import FragmentList
from lancelake.format.frozen import FrozenMap, parse, restore_unknown, unknown_bytes
from lancelake.format.ids import MAX_FRAGMENT_ID, BaseId, Version
from lancelake.format.schema import Schema, decode_schema, encode_schema
from lancelake.proto import columns_pb2, file_pb2, table_pb2, transaction_pb2


class FeatureFlags(IntFlag):
    """Bits of the reader and writer flag words."""

    DELETION_FILES = 1
    STABLE_ROW_IDS = 2
    V2_FILES = 4
    TABLE_CONFIG = 8
    BASE_PATHS = 16
    NO_TRANSACTION_FILES = 32
    OVERLAY_FILES = 64
    COVERING_INDICES = 128
    MIXED_FILE_VERSIONS = 256
    TAGGED_FRAGMENT_REUSE = 1024


_KNOWN_TO_4_0 = (
    FeatureFlags.DELETION_FILES
    | FeatureFlags.STABLE_ROW_IDS
    | FeatureFlags.V2_FILES
    | FeatureFlags.TABLE_CONFIG
    | FeatureFlags.BASE_PATHS
    | FeatureFlags.NO_TRANSACTION_FILES
)

# Covering columns and tagged fragment reuse only affect the content of indices, not rows.
READABLE = (
    _KNOWN_TO_4_0
    | FeatureFlags.COVERING_INDICES
    | FeatureFlags.MIXED_FILE_VERSIONS
    | FeatureFlags.TAGGED_FRAGMENT_REUSE
)
WRITABLE = _KNOWN_TO_4_0


def unknown_reader_flags(flags: int) -> int:
    """Unsupported flags for reading."""
    return flags & ~int(READABLE)


def unknown_writer_flags(flags: int) -> int:
    """Unsupported flags for writing."""
    return flags & ~int(WRITABLE)


def ensure_readable(flags: int) -> None:
    """Raise when a reader of this release would misread the table."""
    if unknown := unknown_reader_flags(flags):
        msg = f"the table needs reader features that are not supported (flags {unknown:#x})"
        raise UnsupportedError(msg, flags=unknown, action="Upgrade lancelake.")


def ensure_writable(flags: int) -> None:
    """Raise when a writer of this release would damage the table."""
    if unknown := unknown_writer_flags(flags):
        msg = f"the table needs writer features that are not supported (flags {unknown:#x})"
        action = "Upgrade lancelake, or only read the table."
        raise UnsupportedError(msg, flags=unknown, action=action)


# The flag words are plain numbers, which are combined faster than flags.
_STABLE_ROW_IDS = int(FeatureFlags.STABLE_ROW_IDS)
_EMPTY: FrozenMap[str, str] = FrozenMap()
_RELEASE = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})*")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterVersion:
    """The library that wrote a version."""

    library: str
    version: str
    prerelease: str | None = None
    build_metadata: str | None = None

    @property
    def release(self) -> tuple[int, ...]:
        """Numbers of the release, such as (14, 0, 2); empty if the version has another form."""
        match = _RELEASE.match(self.version)
        return () if match is None else tuple(map(int, match[0].split(".")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Content of a version: schema, fragments, config and base paths."""

    schema: Schema
    fragments: Sequence[Fragment]
    version: Version
    data_version: FileVersion
    timestamp_ns: int | None = None
    writer_version: WriterVersion | None = None
    tag: str = ""
    reader_feature_flags: int = 0
    writer_feature_flags: int = 0
    max_fragment_id: int | None = None
    transaction_file: str = ""
    next_row_id: int = 0
    config: FrozenMap[str, str] = _EMPTY
    table_metadata: FrozenMap[str, str] = _EMPTY
    base_paths: tuple[BasePath, ...] = ()
    branch: str | None = None
    version_aux_data: int = 0
    unknown: bytes = b""

    @property
    def timestamp(self) -> datetime | None:
        """When the version was committed."""
        return None if self.timestamp_ns is None else utc_from_ns(self.timestamp_ns)

    @property
    def has_stable_row_ids(self) -> bool:
        """Whether rows keep their ids when they move."""
        flags = self.reader_feature_flags | self.writer_feature_flags
        return bool(flags & _STABLE_ROW_IDS)

    def base_path(self, base_id: BaseId) -> BasePath | None:
        """Return the declared base of this id."""
        return next((b for b in self.base_paths if b.id == base_id), None)


MAGIC = b"LANC"
_FOOTER = struct.Struct("<qHH4s")
_LENGTH = struct.Struct("<I")
_FOOTER_VERSION = (0, 2)
_NANOS = 1_000_000_000
_MIN_SECONDS = -62_135_596_800
_MAX_SECONDS = 253_402_300_799
_SCHEMAS = 64
# Versions that are opened again and again are mostly small ones.
_MANIFESTS = 16
_MOST_CACHED_BYTES = 16 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFile:
    """A manifest with the other sections of its file, still encoded."""

    manifest: Manifest
    index_section: bytes | None = None
    inline_transaction: bytes | None = None


def decode_manifest(data: bytes) -> ManifestFile:
    """Read a manifest file; a small one that was read before gives the same object."""
    return _decode(data) if len(data) > _MOST_CACHED_BYTES else _decoded(data)


@functools.lru_cache(maxsize=_MANIFESTS)
def _decoded(data: bytes) -> ManifestFile:
    return _decode(data)


def _decode(data: bytes) -> ManifestFile:
    message = table_pb2.Manifest()
    body = manifest_bytes(data)
    parse(message, body, what="manifest")
    ensure_readable(message.reader_feature_flags)
    return ManifestFile(
        manifest=_manifest_of(message, body),
        index_section=section(data, message, "index_section"),
        inline_transaction=_inline_transaction(data, message),
    )


def encode_manifest(
    manifest: Manifest, *, index_section: bytes | None = None, transaction: bytes | None = None
) -> bytes:
    """Write a manifest file."""
    message = _encode_rest(manifest)
    out = bytearray()
    if index_section is not None:
        message.index_section = len(out)
        out += _LENGTH.pack(len(index_section)) + index_section
    if transaction is not None:
        message.transaction_section = len(out)
        out += _LENGTH.pack(len(transaction)) + transaction
    position = len(out)
    body = b"".join(
        (
            _encode_fields(manifest),
            FragmentList.of(manifest.fragments).encoded(),
            message.SerializeToString(deterministic=True),
        )
    )
    out += _LENGTH.pack(len(body)) + body
    out += _FOOTER.pack(position, *_FOOTER_VERSION, MAGIC)
    return bytes(out)


def decode_fragments(message: table_pb2.Manifest, body: bytes) -> FragmentList:
    """Return the fragments; counts of writers before 0.8 are ignored."""
    if message.HasField("writer_version"):
        return FragmentList.in_manifest(body)
    return FragmentList.of([fragment.decode(f, trust_counts=False) for f in message.fragments])


def manifest_bytes(data: bytes) -> bytes:
    """Return the encoded manifest within its file."""
    if len(data) < _FOOTER.size + _LENGTH.size:
        msg = f"manifest file of {len(data)} bytes is truncated"
        raise CorruptTableError(msg)
    position, _major, _minor, magic = _FOOTER.unpack_from(data, len(data) - _FOOTER.size)
    if magic != MAGIC:
        msg = f"manifest file ends in {magic!r} and not in {MAGIC!r}"
        raise CorruptTableError(msg)
    end = len(data) - _FOOTER.size
    if not 0 <= position <= end - _LENGTH.size:
        msg = f"manifest position {position} is outside of the file"
        raise CorruptTableError(msg)
    (length,) = _LENGTH.unpack_from(data, position)
    start = position + _LENGTH.size
    if length != end - start:
        msg = f"manifest length {length} does not match its {end - start} bytes"
        raise CorruptTableError(msg)
    return data[start:end]


def section(data: bytes, message: Message, name: str) -> bytes | None:
    """Return the section `name`, whose position is in the manifest."""
    if not message.HasField(name):
        return None
    position = getattr(message, name)
    if position + _LENGTH.size > len(data):
        msg = f"{name} at {position} is outside of the manifest file"
        raise CorruptTableError(msg)
    (length,) = _LENGTH.unpack_from(data, position)
    start = position + _LENGTH.size
    if start + length > len(data):
        msg = f"{name} of {length} bytes ends after the manifest file"
        raise CorruptTableError(msg)
    return data[start : start + length]


def _inline_transaction(data: bytes, message: table_pb2.Manifest) -> bytes | None:
    current = section(data, message, "transaction_section")
    return current if current is not None else section(data, message, "transaction_section_v14")


def _manifest_of(message: table_pb2.Manifest, body: bytes) -> Manifest:
    _ensure_row_ids(message)
    rest = unknown_bytes(message)
    return Manifest(
        schema=_schema(
            tuple(field.SerializeToString() for field in message.fields),
            tuple(message.schema_metadata.items()),
        ),
        fragments=decode_fragments(message, body),
        version=Version(message.version),
        data_version=_data_version(message),
        timestamp_ns=_timestamp(message),
        writer_version=_writer_version(message),
        tag=message.tag,
        reader_feature_flags=message.reader_feature_flags,
        writer_feature_flags=message.writer_feature_flags,
        max_fragment_id=_max_fragment_id(message),
        transaction_file=message.transaction_file,
        next_row_id=message.next_row_id,
        config=FrozenMap(dict(message.config)),
        table_metadata=FrozenMap(dict(message.table_metadata)),
        base_paths=tuple(fragment.BASE.decode(b) for b in message.base_paths),
        branch=message.branch if message.HasField("branch") else None,
        version_aux_data=message.version_aux_data,
        unknown=rest,
    )


@functools.lru_cache(maxsize=_SCHEMAS)
def _schema(fields: tuple[bytes, ...], metadata: tuple[tuple[str, bytes], ...]) -> Schema:
    """Decode a schema; versions with the same one share it, and what is cached for it."""
    messages = [file_pb2.Field.FromString(field) for field in fields]
    return decode_schema(messages, dict(metadata))


def _ensure_row_ids(message: table_pb2.Manifest) -> None:
    if not message.reader_feature_flags & FeatureFlags.STABLE_ROW_IDS:
        return
    for each in message.fragments:
        if each.WhichOneof("row_id_sequence") is None:
            msg = f"fragment {each.id} has no row ids although row ids are stable"
            raise CorruptTableError(msg, fragment=each.id)


def _data_version(message: table_pb2.Manifest) -> FileVersion:
    if message.HasField("data_format"):
        return fragment.version_from_name(message.data_format.version)
    versions = {
        fragment.version_from_numbers(f.file_major_version, f.file_minor_version)
        for each in message.fragments
        for f in each.files
    }
    if versions:
        return fragment.only_version(versions)
    if message.writer_feature_flags & FeatureFlags.V2_FILES:
        return fragment.UNNAMED_VERSION
    return FileVersion.LEGACY


def _timestamp(message: table_pb2.Manifest) -> int | None:
    if not message.HasField("timestamp"):
        return None
    seconds, nanos = message.timestamp.seconds, message.timestamp.nanos
    if not (_MIN_SECONDS <= seconds <= _MAX_SECONDS and 0 <= nanos < _NANOS):
        msg = f"timestamp {seconds}s {nanos}ns is outside of the calendar"
        raise CorruptTableError(msg)
    return seconds * _NANOS + nanos


def _writer_version(message: table_pb2.Manifest) -> WriterVersion | None:
    if not message.HasField("writer_version"):
        return None
    writer = message.writer_version
    return WriterVersion(
        library=writer.library,
        version=writer.version,
        prerelease=writer.prerelease if writer.HasField("prerelease") else None,
        build_metadata=writer.build_metadata if writer.HasField("build_metadata") else None,
    )


def _max_fragment_id(message: table_pb2.Manifest) -> int | None:
    if message.HasField("max_fragment_id"):
        return message.max_fragment_id
    highest = max((each.id for each in message.fragments), default=None)
    if highest is not None and highest > MAX_FRAGMENT_ID:
        msg = f"fragment id {highest} is too large"
        raise CorruptTableError(msg, fragment=highest)
    return highest


def _encode_fields(manifest: Manifest) -> bytes:
    fields = encode_schema(manifest.schema)
    return table_pb2.Manifest(fields=fields).SerializeToString(deterministic=True)


def _encode_rest(manifest: Manifest) -> table_pb2.Manifest:
    """Encode all but fields and fragments, which are written first and unchanged."""
    message = table_pb2.Manifest(
        version=manifest.version,
        version_aux_data=manifest.version_aux_data,
        tag=manifest.tag,
        reader_feature_flags=manifest.reader_feature_flags,
        writer_feature_flags=manifest.writer_feature_flags,
        max_fragment_id=manifest.max_fragment_id,
        transaction_file=manifest.transaction_file,
        next_row_id=manifest.next_row_id,
        base_paths=[fragment.BASE.encode(b) for b in manifest.base_paths],
        branch=manifest.branch,
    )
    message.data_format.file_format = "lance"
    message.data_format.version = manifest.data_version.value
    message.schema_metadata.update(manifest.schema.metadata)
    message.config.update(manifest.config)
    message.table_metadata.update(manifest.table_metadata)
    if manifest.timestamp_ns is not None:
        message.timestamp.seconds, message.timestamp.nanos = divmod(manifest.timestamp_ns, _NANOS)
    if manifest.writer_version is not None:
        message.writer_version.CopyFrom(_encode_writer(manifest.writer_version))
    restore_unknown(message, manifest.unknown)
    return message


def _encode_writer(writer: WriterVersion) -> table_pb2.Manifest.WriterVersion:
    return table_pb2.Manifest.WriterVersion(
        library=writer.library,
        version=writer.version,
        prerelease=writer.prerelease,
        build_metadata=writer.build_metadata,
    )


_UUID_BYTES = 16
_EXTERNAL: tuple[
    Literal[
        "external_row_ids", "external_last_updated_at_versions", "external_created_at_versions"
    ],
    ...,
] = ("external_row_ids", "external_last_updated_at_versions", "external_created_at_versions")


# A tuple, because thousands of versions are read.
class VersionOutline(NamedTuple):
    """A version; its fragments are still encoded, and equal ones are equal bytes."""

    version: int
    timestamp_ns: int | None
    reader_feature_flags: int
    writer_feature_flags: int
    fragments: Sequence[bytes]
    transaction_file: str
    index_section: bytes | None
    names_writer: bool
    """Whether it states its writer; the oldest writers did not, and had wrong counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileNames:
    """Names of files as versions refer to them, without their location.

    A deletion file is identified by the version that was read and its id. `data` includes files
    with row id sequences.
    """

    data: tuple[str, ...] = ()
    deletions: tuple[str, ...] = ()
    indices: tuple[str, ...] = ()


def decode_outline(data: bytes) -> VersionOutline:
    """Read the outline of the version in a manifest file."""
    message = columns_pb2.VersionOutline()
    parse(message, manifest_bytes(data), what="manifest")
    return VersionOutline(
        version=message.version,
        timestamp_ns=_outline_timestamp(message),
        reader_feature_flags=message.reader_feature_flags,
        writer_feature_flags=message.writer_feature_flags,
        fragments=message.fragments,
        transaction_file=message.transaction_file,
        index_section=section(data, message, "index_section"),
        names_writer=message.HasField("writer_version"),
    )


def index_ids(section: bytes) -> tuple[str, ...]:
    """Return the ids of all index segments in a section."""
    message = columns_pb2.IndexIds()
    parse(message, section, what="index section")
    uuids = message.indices.uuid.uuid
    for each in uuids:
        if len(each) != _UUID_BYTES:
            raise CorruptTableError(f"an index has a uuid of {len(each)} bytes")
    return tuple(str(uuid.UUID(bytes=each)) for each in uuids)


def files_of_fragment(encoded: bytes) -> tuple[list[str], list[str]]:
    """Return the names of data files and of deletion files of a fragment."""
    message = table_pb2.DataFragment()
    parse(message, encoded, what="fragment")
    data = [file.path for file in message.files]
    data += [getattr(message, name).path for name in _EXTERNAL if message.HasField(name)]
    has_deletions = message.HasField("deletion_file")
    return data, [_deletion_name(message.deletion_file)] if has_deletions else []


def files_of_transaction(encoded: bytes) -> FileNames:
    """Return the files that a transaction refers to, including removed ones."""
    message = transaction_pb2.Transaction()
    parse(message, encoded, what="transaction")
    data: list[str] = []
    deletions: list[str] = []
    indices: list[str] = []
    for each in _within(message):
        if isinstance(each, table_pb2.DataFile):
            data.append(each.path)
        elif isinstance(each, table_pb2.DeletionFile):
            deletions.append(_deletion_name(each))
        elif isinstance(each, table_pb2.UUID) and len(each.uuid) == _UUID_BYTES:
            indices.append(str(uuid.UUID(bytes=each.uuid)))
    return FileNames(data=tuple(data), deletions=tuple(deletions), indices=tuple(indices))


def _deletion_name(file: table_pb2.DeletionFile) -> str:
    return f"{file.read_version}-{file.id}"


def _outline_timestamp(message: columns_pb2.VersionOutline) -> int | None:
    if not message.HasField("timestamp"):
        return None
    time = message.timestamp
    return time.seconds * _NANOS + time.nanos


def _within(message: Message) -> Iterator[Message]:
    """Yield a message and every message in it."""
    yield message
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None:
            continue
        if isinstance(value, Message):
            yield from _within(value)
        elif not descriptor.message_type.GetOptions().map_entry:
            for each in value:
                yield from _within(each)
