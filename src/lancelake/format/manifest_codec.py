"""The manifest file: index section, inline transaction, manifest, footer."""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass

from google.protobuf.message import Message

from lancelake.errors import CorruptTableError
from lancelake.format import bases, file_version, fragment, schema_codec
from lancelake.format import manifest as flags
from lancelake.format.file_version import FileVersion
from lancelake.format.fragment_list import FragmentList
from lancelake.format.frozen import FrozenMap, parse, restore_unknown, unknown_bytes
from lancelake.format.ids import MAX_FRAGMENT_ID, Version
from lancelake.format.manifest import FeatureFlags, Manifest, WriterVersion
from lancelake.format.schema import Schema
from lancelake.proto import file_pb2, table_pb2

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


def decode(data: bytes) -> ManifestFile:
    """Read a manifest file; a small one that was read before gives the same object."""
    return _decode(data) if len(data) > _MOST_CACHED_BYTES else _decoded(data)


@functools.lru_cache(maxsize=_MANIFESTS)
def _decoded(data: bytes) -> ManifestFile:
    return _decode(data)


def _decode(data: bytes) -> ManifestFile:
    message = table_pb2.Manifest()
    body = manifest_bytes(data)
    parse(message, body, what="manifest")
    flags.ensure_readable(message.reader_feature_flags)
    return ManifestFile(
        manifest=_decode_manifest(message, body),
        index_section=section(data, message, "index_section"),
        inline_transaction=_inline_transaction(data, message),
    )


def encode(
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


def _decode_manifest(message: table_pb2.Manifest, body: bytes) -> Manifest:
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
        base_paths=tuple(bases.decode(b) for b in message.base_paths),
        branch=message.branch if message.HasField("branch") else None,
        version_aux_data=message.version_aux_data,
        unknown=rest,
    )


@functools.lru_cache(maxsize=_SCHEMAS)
def _schema(fields: tuple[bytes, ...], metadata: tuple[tuple[str, bytes], ...]) -> Schema:
    """Decode a schema; versions with the same one share it, and what is cached for it."""
    messages = [file_pb2.Field.FromString(field) for field in fields]
    return schema_codec.decode(messages, dict(metadata))


def _ensure_row_ids(message: table_pb2.Manifest) -> None:
    if not message.reader_feature_flags & FeatureFlags.STABLE_ROW_IDS:
        return
    for each in message.fragments:
        if each.WhichOneof("row_id_sequence") is None:
            msg = f"fragment {each.id} has no row ids although row ids are stable"
            raise CorruptTableError(msg, fragment=each.id)


def _data_version(message: table_pb2.Manifest) -> FileVersion:
    if message.HasField("data_format"):
        return file_version.from_name(message.data_format.version)
    versions = {
        file_version.from_numbers(f.file_major_version, f.file_minor_version)
        for each in message.fragments
        for f in each.files
    }
    if versions:
        return file_version.only(versions)
    if message.writer_feature_flags & FeatureFlags.V2_FILES:
        return file_version.UNNAMED
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
    fields = schema_codec.encode(manifest.schema)
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
        base_paths=[bases.encode(b) for b in manifest.base_paths],
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
