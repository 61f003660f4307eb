"""Commit request: a transaction and its retry settings."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.format.operations import Overwrite
from lancelake.format.transaction import Transaction
from lancelake.txn.key_hashes import KeyHashes
from lancelake.txn.options import VersionChoices
from lancelake.txn.rules import AffectedRows

DEFAULT_RETRIES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestChoices(VersionChoices):
    """Choices for a version, and for the attempts to commit it."""

    affected_rows: AffectedRows | None = None
    """Rows that the transaction deletes or moves, if known."""

    inserted_keys: KeyHashes | None = None
    """Keys that the transaction inserts, if known."""

    max_retries: int = DEFAULT_RETRIES
    """With 0 an Overwrite is strict: it becomes the next version or fails."""

    timeout_s: float | None = None
    """No attempt starts after this time, except for the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRequest:
    """A transaction to commit."""

    transaction: Transaction
    choices: RequestChoices

    @property
    def is_strict(self) -> bool:
        """Whether any commit in between makes the request fail."""
        return self.choices.max_retries == 0 and isinstance(self.transaction.operation, Overwrite)

    @property
    def max_attempts(self) -> int:
        """Maximum number of attempts."""
        return max(self.choices.max_retries, 1)

    @property
    def kind(self) -> str:
        """Name of the operation."""
        return type(self.transaction.operation).__name__
