"""Merge: the whole fragment list with added columns, and the next schema."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.format import fragment, schema_codec
from lancelake.format.fragment import Fragment
from lancelake.format.frozen import restore_unknown, unknown_bytes
from lancelake.format.schema import Schema
from lancelake.proto.transaction_pb2 import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """Columns added or rewritten."""

    fragments: tuple[Fragment, ...]
    schema: Schema
    preserves_nullability: bool = False
    unknown: bytes = b""


def decode(message: Transaction.Merge) -> Merge:
    """Read the operation."""
    return Merge(
        fragments=tuple(fragment.decode(f) for f in message.fragments),
        schema=schema_codec.decode(message.schema, message.schema_metadata),
        preserves_nullability=message.preserves_nullability,
        unknown=unknown_bytes(message),
    )


def encode(op: Merge) -> Transaction.Merge:
    """Write the operation."""
    message = Transaction.Merge(
        fragments=[fragment.encode(f) for f in op.fragments],
        schema=schema_codec.encode(op.schema),
        schema_metadata=op.schema.metadata,
        preserves_nullability=op.preserves_nullability,
    )
    restore_unknown(message, op.unknown)
    return message
