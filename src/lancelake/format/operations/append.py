"""Append: new rows; fragment ids are assigned at commit."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.format import fragment
from lancelake.format.fragment import Fragment
from lancelake.format.frozen import restore_unknown, unknown_bytes
from lancelake.proto.transaction_pb2 import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """Fragments added to the table."""

    fragments: tuple[Fragment, ...]
    unknown: bytes = b""


def decode(message: Transaction.Append) -> Append:
    """Read the operation."""
    return Append(
        fragments=tuple(fragment.decode(f) for f in message.fragments),
        unknown=unknown_bytes(message),
    )


def encode(op: Append) -> Transaction.Append:
    """Write the operation."""
    message = Transaction.Append(fragments=[fragment.encode(f) for f in op.fragments])
    restore_unknown(message, op.unknown)
    return message
