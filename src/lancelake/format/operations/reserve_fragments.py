"""ReserveFragments: fragment ids reserved for a later rewrite."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.format.frozen import restore_unknown, unknown_bytes
from lancelake.proto.transaction_pb2 import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class ReserveFragments:
    """Number of ids to reserve."""

    num_fragments: int
    unknown: bytes = b""


def decode(message: Transaction.ReserveFragments) -> ReserveFragments:
    """Read the operation."""
    return ReserveFragments(num_fragments=message.num_fragments, unknown=unknown_bytes(message))


def encode(op: ReserveFragments) -> Transaction.ReserveFragments:
    """Write the operation."""
    message = Transaction.ReserveFragments(num_fragments=op.num_fragments)
    restore_unknown(message, op.unknown)
    return message
