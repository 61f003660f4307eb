"""Project: columns dropped, renamed or reordered; no data is touched."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.format import schema_codec
from lancelake.format.frozen import restore_unknown, unknown_bytes
from lancelake.format.schema import Schema
from lancelake.proto.transaction_pb2 import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The next schema."""

    schema: Schema
    preserves_nullability: bool = False
    unknown: bytes = b""


def decode(message: Transaction.Project) -> Project:
    """Read the operation."""
    return Project(
        schema=schema_codec.decode(message.schema, {}),
        preserves_nullability=message.preserves_nullability,
        unknown=unknown_bytes(message),
    )


def encode(op: Project) -> Transaction.Project:
    """Write the operation."""
    message = Transaction.Project(
        schema=schema_codec.encode(op.schema), preserves_nullability=op.preserves_nullability
    )
    restore_unknown(message, op.unknown)
    return message
