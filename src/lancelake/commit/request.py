"""What a commit is asked for, what it needs, and what it returns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from lancelake.clock import Clock, Ids
from lancelake.commit.snapshot import CommitMetrics, Snapshot
from lancelake.format.manifest import WriterVersion
from lancelake.format.operations import Overwrite
from lancelake.format.transaction import Transaction
from lancelake.txn import migrations
from lancelake.txn.key_bloom import KeyHashes
from lancelake.txn.options import BuildOptions, Facts, MissingFacts, TableState, VersionChoices
from lancelake.txn.rules import AffectedRows, KeyPort, RebasePort

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

    may_have_landed: bool = False
    """Whether an earlier attempt may have committed the same transaction.

    It is then never committed past versions that no longer exist, where it could be.
    """

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


class FactsPort(Protocol):
    """Reads facts from files that old writers left out of manifests."""

    def learn(self, state: TableState, wanted: MissingFacts) -> Facts:
        """Return the missing facts of a version."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitServices:
    """Services that a commit uses besides the version line.

    Without `keys`, rows added by concurrent commits cannot be checked for the keys of an upsert.
    """

    port: RebasePort
    facts: FactsPort
    clock: Clock
    ids: Ids
    writer: WriterVersion
    keys: KeyPort | None = None

    def options_for(self, choices: VersionChoices, head: TableState | None = None) -> BuildOptions:
        """Return options for a version committed now, on top of `head` or as the first one."""
        options = BuildOptions(
            timestamp_ns=self.clock.now_ns(), writer=self.writer, choices=choices
        )
        if head is None:
            return options
        corrected = choices.corrections.applied(head)
        wanted = migrations.wanted(corrected)
        return replace(options, facts=self.facts.learn(corrected, wanted)) if wanted else options


# 32 slots keep a few dozen writers apart. A writer that has lost more often than that waits less
# than those who came after it, and in the end not at all: no writer starves.
_SLOTS = (4, 8, 16, 32, 16, 8, 4, 2)
_MARGIN = 1.1
_DETACHED_FIRST_S = 0.05
_DETACHED_SPREAD_S = 0.05
_DETACHED_MOST_S = 5.0
_DETACHED_MOST_EXPONENT = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotBackoff:
    """Random backoff in slots; a slot is a little longer than one attempt."""

    attempt_s: float

    def delay_s(self, wait: int, chance: float) -> float:
        """Return wait number `wait` (from 0), a random part of its slots."""
        slots = _SLOTS[wait] if wait < len(_SLOTS) else 0
        return int(chance * slots) * _MARGIN * self.attempt_s


def redo_delay_s(attempt_s: float, chance: float, *, most_s: float) -> float:
    """Return the wait before a change is made again: shorter than the change and `most_s`."""
    return chance * max(0.0, min(attempt_s, most_s))


def detached_delay_s(wait: int, chance: float) -> float:
    """Return the wait number `wait` (from 0) of a detached commit whose number was taken."""
    full = _DETACHED_FIRST_S * 2.0 ** min(wait, _DETACHED_MOST_EXPONENT)
    spread = (2 * chance - 1) * _DETACHED_SPREAD_S
    return min(_DETACHED_MOST_S, max(0.0, full + spread))
