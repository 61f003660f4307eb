"""Index entries of a manifest: fields, files and covered fragments of index segments."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lancelake.errors import CorruptTableError
from lancelake.format.ids import BaseId, FieldId, Version
from lancelake.format.unknown import parse, restore_unknown, unknown_bytes
from lancelake.proto import table_pb2

if TYPE_CHECKING:
    from pyroaring import BitMap

FRAGMENT_REUSE = "__lance_frag_reuse"
MEM_WAL = "__lance_mem_wal"
_UUID_BYTES = 16
# More do not fit into a manifest that can be read; callers expand the bitmap.
_MAX_FRAGMENTS = 1 << 21


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFile:
    """A file of an index segment, relative to the segment's folder."""

    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexDetails:
    """The kind of an index and its parameters, still encoded."""

    type_url: str
    value: bytes

    @property
    def kind(self) -> str:
        """Last part of the type URL, lower case: how releases compare kinds."""
        return self.type_url.rsplit("/", 1)[-1].rsplit(".", 1)[-1].lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexMetadata:
    """One segment of an index."""

    uuid: uuid.UUID
    name: str
    fields: tuple[FieldId, ...]
    dataset_version: Version
    fragment_bitmap: bytes = b""
    details: IndexDetails | None = None
    index_version: int | None = None
    created_at_ms: int | None = None
    base_id: BaseId | None = None
    files: tuple[IndexFile, ...] = ()
    unknown: bytes = b""

    @property
    def is_system(self) -> bool:
        """Whether the entry is a system index, which queries do not use."""
        return self.name in (FRAGMENT_REUSE, MEM_WAL)

    def fragments(self) -> BitMap | None:
        """Covered fragments; None when the entry does not state them."""
        if not self.fragment_bitmap:
            return None
        # Opening a version does not decode bitmaps, and the module is slow to load.
        from lancelake.format import deletion  # noqa: PLC0415

        what = f"fragment bitmap of index {self.name!r}"
        found = deletion.decode_bitmap(self.fragment_bitmap, what=what)
        if len(found) > _MAX_FRAGMENTS:
            raise CorruptTableError(f"{what} claims {len(found)} fragments")
        return found


def decode_section(data: bytes) -> tuple[IndexMetadata, ...]:
    """Read the index section of a manifest file."""
    section = table_pb2.IndexSection()
    parse(section, data, what="index section")
    return tuple(decode(entry) for entry in section.indices)


def encode_section(indices: tuple[IndexMetadata, ...]) -> bytes:
    """Write the index section of a manifest file."""
    section = table_pb2.IndexSection(indices=[encode(i) for i in indices])
    return section.SerializeToString(deterministic=True)


def decode(message: table_pb2.IndexMetadata) -> IndexMetadata:
    """Read one entry."""
    details = message.index_details
    has_details = message.HasField("index_details")
    return IndexMetadata(
        uuid=decode_uuid(message.uuid),
        name=message.name,
        fields=tuple(FieldId(f) for f in message.fields),
        dataset_version=Version(message.dataset_version),
        fragment_bitmap=message.fragment_bitmap,
        details=IndexDetails(type_url=details.type_url, value=details.value)
        if has_details
        else None,
        index_version=message.index_version if message.HasField("index_version") else None,
        created_at_ms=message.created_at if message.HasField("created_at") else None,
        base_id=BaseId(message.base_id) if message.HasField("base_id") else None,
        files=tuple(IndexFile(path=f.path, size_bytes=f.size_bytes) for f in message.files),
        unknown=unknown_bytes(message),
    )


def encode(index: IndexMetadata) -> table_pb2.IndexMetadata:
    """Write one entry."""
    message = table_pb2.IndexMetadata(
        uuid=encode_uuid(index.uuid),
        fields=index.fields,
        name=index.name,
        dataset_version=index.dataset_version,
        fragment_bitmap=index.fragment_bitmap,
        index_version=index.index_version,
        created_at=index.created_at_ms,
        base_id=index.base_id,
        files=[table_pb2.IndexFile(path=f.path, size_bytes=f.size_bytes) for f in index.files],
    )
    if index.details is not None:
        message.index_details.type_url = index.details.type_url
        message.index_details.value = index.details.value
    restore_unknown(message, index.unknown)
    return message


def decode_uuid(message: table_pb2.UUID) -> uuid.UUID:
    """Read a uuid of sixteen bytes."""
    if len(message.uuid) != _UUID_BYTES:
        msg = f"a uuid has {len(message.uuid)} bytes"
        raise CorruptTableError(msg)
    return uuid.UUID(bytes=message.uuid)


def encode_uuid(value: uuid.UUID) -> table_pb2.UUID:
    """Write a uuid."""
    return table_pb2.UUID(uuid=value.bytes)
