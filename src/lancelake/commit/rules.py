"""Interfaces a commit depends on: conflict rules, and access to files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from lancelake.clock import Clock, Ids
from lancelake.format.manifest import WriterVersion
from lancelake.format.operations import Operation
from lancelake.format.transaction import Transaction
from lancelake.txn import build, migrations, registry
from lancelake.txn.facts import Facts, MissingFacts
from lancelake.txn.options import BuildOptions, VersionChoices
from lancelake.txn.rules import AffectedRows, Context, KeyPort, RebasePort, Retryable, Verdict
from lancelake.txn.state import TableState


class CommitRules(Protocol):
    """Conflict, rebase and build rules of transactions."""

    def conflicts(self, mine: Operation, theirs: Operation, context: Context) -> Verdict:
        """Check whether mine conflicts with theirs."""
        ...

    def rebase(
        self,
        mine: Transaction,
        head: TableState,
        *,
        base: TableState,
        affected_rows: AffectedRows | None,
        port: RebasePort,
    ) -> Transaction | Retryable:
        """Rebase mine onto the newest version."""
        ...

    def wanted(self, state: TableState) -> MissingFacts:
        """Return which facts must be read from files before the next version is built."""
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

    def clone(
        self,
        transaction: Transaction,
        source: TableState,
        source_uri: str,
        options: BuildOptions,
    ) -> TableState:
        """Build the first version of a copy."""
        ...


class _TableRules:
    """Implementation of `CommitRules` by lancelake.txn."""

    __slots__ = ()

    conflicts = staticmethod(registry.conflicts)
    rebase = staticmethod(registry.rebase)
    wanted = staticmethod(migrations.wanted)
    create = staticmethod(build.create)
    next_state = staticmethod(build.next_state)
    clone = staticmethod(build.clone)


TABLE_RULES: CommitRules = _TableRules()


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

    rules: CommitRules
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
        wanted = self.rules.wanted(corrected)
        return replace(options, facts=self.facts.learn(corrected, wanted)) if wanted else options
