"""Rewrite: groups of fragments and their replacements (compaction)."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from lancelake.format import fragment, index_meta
from lancelake.format.fragment import Fragment
from lancelake.format.frozen import restore_unknown, unknown_bytes
from lancelake.format.index_meta import IndexDetails, IndexFile
from lancelake.proto.transaction_pb2 import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteGroup:
    """Fragments that were read together, and those written from them."""

    old_fragments: tuple[Fragment, ...]
    new_fragments: tuple[Fragment, ...]
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenIndex:
    """An index segment whose row addresses were remapped."""

    old_id: uuid.UUID
    new_id: uuid.UUID
    new_details: IndexDetails | None = None
    new_index_version: int = 0
    new_index_files: tuple[IndexFile, ...] = ()
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """The same rows in new files."""

    groups: tuple[RewriteGroup, ...]
    rewritten_indices: tuple[RewrittenIndex, ...] = ()
    unknown: bytes = b""


def decode(message: Transaction.Rewrite) -> Rewrite:
    """Read the operation; the ungrouped form of old releases becomes one group."""
    groups = [_decode_group(g) for g in message.groups]
    if not groups and (message.old_fragments or message.new_fragments):
        old = tuple(fragment.decode(f) for f in message.old_fragments)
        new = tuple(fragment.decode(f) for f in message.new_fragments)
        groups = [RewriteGroup(old_fragments=old, new_fragments=new)]
    return Rewrite(
        groups=tuple(groups),
        rewritten_indices=tuple(_decode_index(i) for i in message.rewritten_indices),
        unknown=unknown_bytes(message),
    )


def encode(op: Rewrite) -> Transaction.Rewrite:
    """Write the operation."""
    message = Transaction.Rewrite(
        groups=[_encode_group(g) for g in op.groups],
        rewritten_indices=[_encode_index(i) for i in op.rewritten_indices],
    )
    restore_unknown(message, op.unknown)
    return message


def _decode_group(message: Transaction.Rewrite.RewriteGroup) -> RewriteGroup:
    return RewriteGroup(
        old_fragments=tuple(fragment.decode(f) for f in message.old_fragments),
        new_fragments=tuple(fragment.decode(f) for f in message.new_fragments),
        unknown=unknown_bytes(message),
    )


def _encode_group(group: RewriteGroup) -> Transaction.Rewrite.RewriteGroup:
    message = Transaction.Rewrite.RewriteGroup(
        old_fragments=[fragment.encode(f) for f in group.old_fragments],
        new_fragments=[fragment.encode(f) for f in group.new_fragments],
    )
    restore_unknown(message, group.unknown)
    return message


def _decode_index(message: Transaction.Rewrite.RewrittenIndex) -> RewrittenIndex:
    details = None
    if message.HasField("new_index_details"):
        encoded = message.new_index_details
        details = IndexDetails(type_url=encoded.type_url, value=encoded.value)
    files = (IndexFile(path=f.path, size_bytes=f.size_bytes) for f in message.new_index_files)
    return RewrittenIndex(
        old_id=index_meta.decode_uuid(message.old_id),
        new_id=index_meta.decode_uuid(message.new_id),
        new_details=details,
        new_index_version=message.new_index_version,
        new_index_files=tuple(files),
        unknown=unknown_bytes(message),
    )


def _encode_index(index: RewrittenIndex) -> Transaction.Rewrite.RewrittenIndex:
    message = Transaction.Rewrite.RewrittenIndex(
        old_id=index_meta.encode_uuid(index.old_id),
        new_id=index_meta.encode_uuid(index.new_id),
        new_index_version=index.new_index_version,
    )
    for file in index.new_index_files:
        message.new_index_files.add(path=file.path, size_bytes=file.size_bytes)
    if index.new_details is not None:
        message.new_index_details.type_url = index.new_details.type_url
        message.new_index_details.value = index.new_details.value
    restore_unknown(message, index.unknown)
    return message
