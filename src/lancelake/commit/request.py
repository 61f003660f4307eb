"""What is to be committed, and how hard to try?"""

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
    """A change to be committed.

    `affected_rows` are the rows it deletes or moves, `inserted_keys` the keys it inserts, as far
    as known. `max_retries` 0 makes an
    Overwrite strict: it becomes the very next version or fails. No attempt begins after
    `timeout_s`, but the first always does. The time in `options` is set anew on each attempt.
    """

    transaction: Transaction
    options: BuildOptions
    affected_rows: AffectedRows | None = None
    inserted_keys: KeyHashes | None = None
    max_retries: int = DEFAULT_RETRIES
    timeout_s: float | None = None

    @property
    def is_strict(self) -> bool:
        """Whether no other commit may come between."""
        return self.max_retries == 0 and isinstance(self.transaction.operation, Overwrite)

    @property
    def max_attempts(self) -> int:
        """How many races may be run."""
        return max(self.max_retries, 1)

    @property
    def kind(self) -> str:
        """Name of the operation."""
        return type(self.transaction.operation).__name__
