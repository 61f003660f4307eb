"""Version outline: a version and its files, without decoding the whole manifest."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from google.protobuf.message import Message

from lancelake.errors import CorruptTableError
from lancelake.format import manifest_codec
from lancelake.format.frozen import parse
from lancelake.proto import columns_pb2, table_pb2, transaction_pb2

_NANOS = 1_000_000_000
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


def decode(data: bytes) -> VersionOutline:
    """Read the outline of the version in a manifest file."""
    message = columns_pb2.VersionOutline()
    parse(message, manifest_codec.manifest_bytes(data), what="manifest")
    return VersionOutline(
        version=message.version,
        timestamp_ns=_timestamp(message),
        reader_feature_flags=message.reader_feature_flags,
        writer_feature_flags=message.writer_feature_flags,
        fragments=message.fragments,
        transaction_file=message.transaction_file,
        index_section=manifest_codec.section(data, message, "index_section"),
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


def _timestamp(message: columns_pb2.VersionOutline) -> int | None:
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
