"""Idempotent writes, identified by an application id and a version (txnAppId, txnVersion)."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError, VersionNotFoundError
from lancelake.format import layout
from lancelake.format.frozen import FrozenMap
from lancelake.format.transaction import Transaction
from lancelake.storage.open import open_store
from lancelake.table.history import history

APP_ID = "lancelake.txn.appId"
APP_VERSION = "lancelake.txn.version"

_NAMESPACE = uuid.UUID("5b9d6f0e-6f2c-5d0e-9f53-6b1f6f2f6c11")


@dataclass(frozen=True, slots=True, kw_only=True)
class OnceOnly:
    """A write that is committed at most once, however often it is attempted.

    The uuid of its transaction is derived from the two, so that it can be found by name.
    """

    app_id: str
    version: int

    @staticmethod
    def of(app_id: str | None, version: int | None) -> OnceOnly | None:
        """Parse the pair of options, which must be set together."""
        if app_id is None and version is None:
            return None
        if not app_id or version is None:
            raise InvalidRequestError(
                "options txnAppId and txnVersion must be set together",
                action="Set both, or neither.",
            )
        return OnceOnly(app_id=app_id, version=version)

    @property
    def uuid(self) -> str:
        """The uuid of the transaction."""
        return str(uuid.uuid5(_NAMESPACE, f"{self.app_id}\n{self.version}"))

    def stamped(self, transaction: Transaction) -> Transaction:
        """Return a transaction with this identity."""
        marks = {APP_ID: self.app_id, APP_VERSION: str(self.version)}
        properties = FrozenMap({**transaction.properties, **marks})
        return replace(transaction, uuid=self.uuid, properties=properties)


def landed(head: Snapshot, once: OnceOnly) -> Snapshot | None:
    """Return the version that an earlier attempt committed; None if there is none.

    A transaction file is written before its version, and records the version it has read: without a
    file nothing was committed, and with one only the versions since have to be checked.
    """
    read_versions = _tried_from(head, once)
    if not read_versions:
        return None
    for snapshot in history(head.location, newest_first=True):
        if snapshot.version <= min(read_versions):
            return None
        if _is_by(snapshot, once):
            return snapshot
    return None


def _tried_from(head: Snapshot, once: OnceOnly) -> list[int]:
    suffix = f"-{once.uuid}.txn"
    found = open_store(head.location).list(layout.TRANSACTIONS)
    names = [entry.path.rpartition("/")[2] for entry in found if entry.path.endswith(suffix)]
    return [int(name.removesuffix(suffix)) for name in names]


def _is_by(snapshot: Snapshot, once: OnceOnly) -> bool:
    try:
        made_by = snapshot.transaction
    except VersionNotFoundError:
        return False
    return made_by is not None and made_by.uuid == once.uuid
