"""Index maintenance that runs when a table is optimized."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from lancelake.commit.snapshot import Snapshot
from lancelake.engine.port import Engine
from lancelake.table.index.build import DEFAULT_RUN, IndexRun
from lancelake.table.index.refresh import (
    DEFAULT_OPTIONS,
    IndexWork,
    RefreshOptions,
    planned,
    refresh_indices,
)
from lancelake.table.publish import CommitChoices


class IndexMaintenance(Protocol):
    """Index maintenance to run from time to time."""

    def due(self, at: Snapshot) -> tuple[str, ...]:
        """Describe the pending work for a version; empty if there is none."""
        ...

    def run(self, at: Snapshot, engine: Engine | None, choices: CommitChoices) -> Snapshot:
        """Run it, and return the resulting version."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarIndexMaintenance:
    """Adds unindexed rows and merges segments."""

    options: RefreshOptions = DEFAULT_OPTIONS
    how: IndexRun = DEFAULT_RUN

    def due(self, at: Snapshot) -> tuple[str, ...]:
        """Return the indices that do not cover all fragments, or have segments to be merged."""
        works, _ = planned(at, self.options)
        return tuple(_shown(work) for work in works if work.is_due)

    def run(
        self,
        at: Snapshot,
        engine: Engine | None,  # noqa: ARG002  # `how` states where indices are built
        choices: CommitChoices,
    ) -> Snapshot:
        """Refresh all indices."""
        return refresh_indices(at, self.options, replace(self.how, choices=choices)).snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentMerging:
    """Merges the segments of indices that have several.

    Compaction does not join fragments of different segments.
    """

    options: RefreshOptions = DEFAULT_OPTIONS
    how: IndexRun = DEFAULT_RUN

    def due(self, at: Snapshot) -> tuple[str, ...]:
        """Return the indices with several segments to be merged."""
        return tuple(_shown(work) for work in self._in_several_segments(at))

    def run(
        self,
        at: Snapshot,
        engine: Engine | None,  # noqa: ARG002  # `how` states where indices are built
        choices: CommitChoices,
    ) -> Snapshot:
        """Merge them, and add unindexed rows."""
        names = tuple(work.name for work in self._in_several_segments(at))
        options = replace(self.options, index_names=names)
        return refresh_indices(at, options, replace(self.how, choices=choices)).snapshot

    def _in_several_segments(self, at: Snapshot) -> list[IndexWork]:
        works, _ = planned(at, self.options)
        return [work for work in works if len(work.merged) > 1]


def _shown(work: IndexWork) -> str:
    fragments, segments = len(work.new_fragments), len(work.merged)
    parts = [f"add {fragments} fragments"] if fragments else []
    parts += [f"merge {segments} segments"] if segments > 1 else []
    return f"index {work.name!r}: {', '.join(parts)}"


INDEX_MAINTENANCE: tuple[IndexMaintenance, ...] = (ScalarIndexMaintenance(),)
"""Index maintenance steps after a compaction, in this order."""

BEFORE_COMPACTION: tuple[IndexMaintenance, ...] = (SegmentMerging(),)
"""Index maintenance steps without which a compaction could not join fragments."""
