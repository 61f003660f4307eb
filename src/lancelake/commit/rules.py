"""Which rules does a commit follow? Those of lancelake.txn, or others in their place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from lancelake.clock import Clock, Ids
from lancelake.format.operations import Operation
from lancelake.format.transaction import Transaction
from lancelake.txn.options import BuildOptions
from lancelake.txn.rules import Context, RebasePort, Retryable, Verdict
from lancelake.txn.state import TableState


class CommitRules(Protocol):
    """What changes mean, as far as a commit asks."""

    def conflicts(self, mine: Operation, theirs: Operation, context: Context) -> Verdict:
        """Judge mine after theirs."""
        ...

    def rebase(
        self, mine: Transaction, head: TableState, context: Context, port: RebasePort
    ) -> Transaction | Retryable:
        """Fit mine to the newest version."""
        ...

    def create(self, transaction: Transaction, options: BuildOptions) -> TableState:
        """Build the first version of a table."""
        ...

    def next_state(
        self,
        transaction: Transaction,
        head: TableState,
        options: BuildOptions,
        *,
        restored: TableState | None = None,
    ) -> TableState:
        """Build the version after `head`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a commit works with beside the line itself."""

    rules: CommitRules
    port: RebasePort
    clock: Clock
    ids: Ids
