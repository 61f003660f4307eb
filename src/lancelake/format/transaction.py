"""Transaction: an operation, the version it was based on, and its properties."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.format import operations
from lancelake.format.frozen import FrozenMap, parse, restore_unknown, unknown_bytes
from lancelake.format.ids import Version
from lancelake.format.operations import Operation, UnknownOperation
from lancelake.proto import transaction_pb2

COMMIT_MESSAGE = "__lance_commit_message"
_EMPTY: FrozenMap[str, str] = FrozenMap()


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """One change of a table."""

    read_version: Version
    uuid: str
    operation: Operation
    tag: str = ""
    properties: FrozenMap[str, str] = _EMPTY
    unknown: bytes = b""

    @property
    def message(self) -> str | None:
        """The commit message."""
        return self.properties.get(COMMIT_MESSAGE)


def decode(data: bytes) -> Transaction:
    """Read a transaction."""
    message = transaction_pb2.Transaction()
    parse(message, data, what="transaction")
    operation = operations.decode(message)
    rest = b"" if isinstance(operation, UnknownOperation) else unknown_bytes(message)
    return Transaction(
        read_version=Version(message.read_version),
        uuid=message.uuid,
        operation=operation,
        tag=message.tag,
        properties=FrozenMap(dict(message.transaction_properties)),
        unknown=rest,
    )


def encode(transaction: Transaction) -> bytes:
    """Write a transaction."""
    message = transaction_pb2.Transaction(
        read_version=transaction.read_version,
        uuid=transaction.uuid,
        tag=transaction.tag,
        transaction_properties=transaction.properties,
    )
    operations.encode_into(message, transaction.operation)
    restore_unknown(message, transaction.unknown)
    return message.SerializeToString(deterministic=True)
