"""Services that a commit depends on: access to files, time and randomness."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from lancelake.clock import Clock, Ids
from lancelake.format.manifest import WriterVersion
from lancelake.txn import migrations
from lancelake.txn.facts import Facts, MissingFacts
from lancelake.txn.options import BuildOptions, VersionChoices
from lancelake.txn.rules import KeyPort, RebasePort
from lancelake.txn.state import TableState


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
