"""Which files does a version need? Answered from the bytes of its manifest, without decoding it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from google.protobuf.message import Message

from lancelake.errors import UnsupportedError
from lancelake.format import manifest_codec
from lancelake.format.flags import READABLE, WRITABLE
from lancelake.format.unknown import parse
from lancelake.proto import columns_pb2, table_pb2, transaction_pb2

_NANOS = 1_000_000_000
_UUID_BYTES = 16
_KNOWN_FLAGS = int(READABLE | WRITABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionNeeds:
    """The names of files as a version knows them, wherever they lie.

    A deletion file is known by the version that was read and its id. `data` includes files that
    hold sequences of row ids.
    """

    version: int
    timestamp_ns: int | None
    data: tuple[str, ...] = ()
    deletions: tuple[str, ...] = ()
    indices: tuple[str, ...] = ()
    transaction: str = ""


def decode(data: bytes) -> VersionNeeds:
    """Read what the version in a manifest file needs.

    Raises for features that are not known: their files would not be found.
    """
    message = columns_pb2.VersionNeeds()
    parse(message, manifest_codec.manifest_bytes(data), what="manifest")
    _ensure_known(message.reader_feature_flags | message.writer_feature_flags)
    fragments = message.fragments
    externals = (
        *fragments.external_row_ids,
        *fragments.external_last_updated_at_versions,
        *fragments.external_created_at_versions,
    )
    section = manifest_codec.section(data, message, "index_section")
    return VersionNeeds(
        version=message.version,
        timestamp_ns=_timestamp(message),
        data=(*fragments.files.path, *map(_external_path, externals)),
        deletions=tuple(map(_deletion_name, fragments.deletion_file)),
        indices=() if section is None else index_ids(section),
        transaction=message.transaction_file,
    )


def index_ids(section: bytes) -> tuple[str, ...]:
    """Return the ids of all index segments in a section."""
    message = columns_pb2.IndexIds()
    parse(message, section, what="index section")
    return tuple(str(uuid.UUID(bytes=each)) for each in message.indices.uuid.uuid)


def decode_transaction(data: bytes) -> VersionNeeds:
    """Read which files a transaction mentions, those that it takes away included."""
    message = transaction_pb2.Transaction()
    parse(message, data, what="transaction")
    found = tuple(_within(message))
    return VersionNeeds(
        version=message.read_version,
        timestamp_ns=None,
        data=tuple(each.path for each in found if isinstance(each, table_pb2.DataFile)),
        deletions=tuple(_name(each) for each in found if isinstance(each, table_pb2.DeletionFile)),
        indices=tuple(
            str(uuid.UUID(bytes=each.uuid))
            for each in found
            if isinstance(each, table_pb2.UUID) and len(each.uuid) == _UUID_BYTES
        ),
    )


def _ensure_known(flags: int) -> None:
    if unknown := flags & ~_KNOWN_FLAGS:
        msg = f"the table has features that are not supported (flags {unknown:#x})"
        raise UnsupportedError(msg, flags=unknown)


def _timestamp(message: columns_pb2.VersionNeeds) -> int | None:
    if not message.HasField("timestamp"):
        return None
    return message.timestamp.seconds * _NANOS + message.timestamp.nanos


def _deletion_name(encoded: bytes) -> str:
    message = table_pb2.DeletionFile()
    parse(message, encoded, what="deletion file entry")
    return _name(message)


def _name(file: table_pb2.DeletionFile) -> str:
    return f"{file.read_version}-{file.id}"


def _external_path(encoded: bytes) -> str:
    message = table_pb2.ExternalFile()
    parse(message, encoded, what="external file entry")
    return message.path


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
