"""Commit result: the new version and metrics."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.commit.snapshot import Snapshot
from lancelake.format.transaction import Transaction
from lancelake.txn.state import TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMetrics:
    """Metrics of a commit.

    `attempts` counts published manifests, `judged` concurrent commits that were checked for
    conflicts, `rebases` how often the change was rebased, `doubts` lost replies.
    """

    attempts: int = 0
    judged: int = 0
    rebases: int = 0
    doubts: int = 0
    milliseconds: int = 0
    manifest_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitResult:
    """The version that a transaction became; `transaction` is as it was recorded."""

    snapshot: Snapshot
    transaction: Transaction
    metrics: CommitMetrics

    @property
    def version(self) -> int:
        """Number of the version."""
        return self.snapshot.version

    @property
    def state(self) -> TableState:
        """The table at the version."""
        return self.snapshot.state

    @property
    def attempts(self) -> int:
        """Number of published manifests; 0 when the transaction was committed before."""
        return self.metrics.attempts

    @property
    def milliseconds(self) -> int:
        """Duration of the commit."""
        return self.metrics.milliseconds
