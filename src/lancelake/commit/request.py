"""Commit request: a transaction and its retry settings."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.format.operations import Overwrite
from lancelake.format.transaction import Transaction
from lancelake.txn.key_hashes import KeyHashes
from lancelake.txn.options import BuildOptions
from lancelake.txn.rules import AffectedRows

DEFAULT_RETRIES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRequest:
    """A transaction to commit.

    `affected_rows` are the rows it deletes or moves, `inserted_keys` the keys it inserts, if
    known. With `max_retries` 0 an Overwrite is strict: it becomes the next version or fails. No
    attempt starts after `timeout_s`, except for the first. The time in `options` is replaced on
    each attempt.
    """

    transaction: Transaction
    options: BuildOptions
    affected_rows: AffectedRows | None = None
    inserted_keys: KeyHashes | None = None
    max_retries: int = DEFAULT_RETRIES
    timeout_s: float | None = None

    @property
    def is_strict(self) -> bool:
        """Whether any commit in between makes the request fail."""
        return self.max_retries == 0 and isinstance(self.transaction.operation, Overwrite)

    @property
    def max_attempts(self) -> int:
        """Maximum number of attempts."""
        return max(self.max_retries, 1)

    @property
    def kind(self) -> str:
        """Name of the operation."""
        return type(self.transaction.operation).__name__
