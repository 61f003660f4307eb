"""Delete: fragments with a new deletion file, and removed fragments."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.format import fragment
from lancelake.format.fragment import Fragment
from lancelake.format.frozen import restore_unknown, unknown_bytes
from lancelake.format.ids import FragmentId
from lancelake.proto.transaction_pb2 import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Rows deleted from existing fragments."""

    updated_fragments: tuple[Fragment, ...]
    deleted_fragment_ids: tuple[FragmentId, ...]
    predicate: str
    unknown: bytes = b""


def decode(message: Transaction.Delete) -> Delete:
    """Read the operation."""
    return Delete(
        updated_fragments=tuple(fragment.decode(f) for f in message.updated_fragments),
        deleted_fragment_ids=tuple(FragmentId(i) for i in message.deleted_fragment_ids),
        predicate=message.predicate,
        unknown=unknown_bytes(message),
    )


def encode(op: Delete) -> Transaction.Delete:
    """Write the operation."""
    message = Transaction.Delete(
        updated_fragments=[fragment.encode(f) for f in op.updated_fragments],
        deleted_fragment_ids=op.deleted_fragment_ids,
        predicate=op.predicate,
    )
    restore_unknown(message, op.unknown)
    return message
