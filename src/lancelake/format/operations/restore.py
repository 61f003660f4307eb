"""Restore: an old version made the newest."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.format.frozen import restore_unknown, unknown_bytes
from lancelake.format.ids import Version
from lancelake.proto.transaction_pb2 import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """The version to restore."""

    version: Version
    unknown: bytes = b""


def decode(message: Transaction.Restore) -> Restore:
    """Read the operation."""
    return Restore(version=Version(message.version), unknown=unknown_bytes(message))


def encode(op: Restore) -> Transaction.Restore:
    """Write the operation."""
    message = Transaction.Restore(version=op.version)
    restore_unknown(message, op.unknown)
    return message
