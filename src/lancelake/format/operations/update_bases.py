"""UpdateBases: base paths added to the table."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.format import bases
from lancelake.format.bases import BasePath
from lancelake.format.frozen import restore_unknown, unknown_bytes
from lancelake.proto.transaction_pb2 import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateBases:
    """Bases to add; id 0 means the next free one."""

    new_bases: tuple[BasePath, ...]
    unknown: bytes = b""


def decode(message: Transaction.UpdateBases) -> UpdateBases:
    """Read the operation."""
    return UpdateBases(
        new_bases=tuple(bases.decode(b) for b in message.new_bases),
        unknown=unknown_bytes(message),
    )


def encode(op: UpdateBases) -> Transaction.UpdateBases:
    """Write the operation."""
    message = Transaction.UpdateBases(new_bases=[bases.encode(b) for b in op.new_bases])
    restore_unknown(message, op.unknown)
    return message
