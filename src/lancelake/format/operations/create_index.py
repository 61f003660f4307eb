"""CreateIndex: index entries added and removed."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.format import index_meta
from lancelake.format.frozen import restore_unknown, unknown_bytes
from lancelake.format.index_meta import IndexMetadata
from lancelake.proto.transaction_pb2 import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateIndex:
    """Index segments that are added and removed."""

    new_indices: tuple[IndexMetadata, ...]
    removed_indices: tuple[IndexMetadata, ...] = ()
    unknown: bytes = b""


def decode(message: Transaction.CreateIndex) -> CreateIndex:
    """Read the operation."""
    return CreateIndex(
        new_indices=tuple(index_meta.decode(i) for i in message.new_indices),
        removed_indices=tuple(index_meta.decode(i) for i in message.removed_indices),
        unknown=unknown_bytes(message),
    )


def encode(op: CreateIndex) -> Transaction.CreateIndex:
    """Write the operation."""
    message = Transaction.CreateIndex(
        new_indices=[index_meta.encode(i) for i in op.new_indices],
        removed_indices=[index_meta.encode(i) for i in op.removed_indices],
    )
    restore_unknown(message, op.unknown)
    return message
