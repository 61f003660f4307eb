"""Transactions of a table."""

from __future__ import annotations

from dataclasses import dataclass, field

from lancelake.clock import SystemIds
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import Version
from lancelake.format.transaction import Transaction as Entry
from lancelake.pylance._dataset.writing.operation import (
    LanceOperation,
    from_operation,
    to_operation,
)


def _fresh_uuid() -> str:
    # A generator kept between calls would produce the same uuids in forked processes.
    return str(SystemIds().uuid4())


@dataclass
class Transaction:
    """One change of a table: the version that was read, and the operation.

    Attributes:
        read_version: The version that the change is based on.
        operation: What the change does.
        uuid: Identifies the transaction; by default a new one.
        transaction_properties: Further properties, such as the commit message.

    Examples:
        >>> restore = lance.Transaction(ds.version, lance.LanceOperation.Restore(1))
        >>> lance.LanceDataset.commit(ds, restore).version
        2
    """

    read_version: int
    operation: LanceOperation.BaseOperation
    uuid: str = field(default_factory=_fresh_uuid)
    transaction_properties: dict[str, str] | None = field(default_factory=dict)
    _tag: str = field(default="", kw_only=True, repr=False, compare=False)
    _unknown: bytes = field(default=b"", kw_only=True, repr=False, compare=False)


def from_transaction(entry: Entry) -> Transaction:
    """Create it from a transaction of the format."""
    return Transaction(
        entry.read_version,
        from_operation(entry.operation),
        entry.uuid,
        dict(entry.properties),
        _tag=entry.tag,
        _unknown=entry.unknown,
    )


def to_transaction(transaction: Transaction) -> Entry:
    """Return the transaction of the format, including fields without a public attribute."""
    return Entry(
        read_version=Version(transaction.read_version),
        uuid=transaction.uuid,
        operation=to_operation(transaction.operation),
        tag=transaction._tag,
        properties=FrozenMap(transaction.transaction_properties or {}),
        unknown=transaction._unknown,
    )
