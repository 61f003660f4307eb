"""Clone: a shallow or deep copy of another table's version."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.format.frozen import restore_unknown, unknown_bytes
from lancelake.format.ids import Version
from lancelake.proto.transaction_pb2 import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Clone:
    """The version and table that were cloned, and how."""

    is_shallow: bool
    ref_name: str | None
    ref_version: Version
    ref_path: str
    branch_name: str | None = None
    unknown: bytes = b""


def decode(message: Transaction.Clone) -> Clone:
    """Read the operation."""
    return Clone(
        is_shallow=message.is_shallow,
        ref_name=message.ref_name if message.HasField("ref_name") else None,
        ref_version=Version(message.ref_version),
        ref_path=message.ref_path,
        branch_name=message.branch_name if message.HasField("branch_name") else None,
        unknown=unknown_bytes(message),
    )


def encode(op: Clone) -> Transaction.Clone:
    """Write the operation."""
    message = Transaction.Clone(
        is_shallow=op.is_shallow,
        ref_name=op.ref_name,
        ref_version=op.ref_version,
        ref_path=op.ref_path,
        branch_name=op.branch_name,
    )
    restore_unknown(message, op.unknown)
    return message
