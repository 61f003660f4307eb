"""A change feed as values: what every task does, and the tasks. Frozen and picklable."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lancelake.expr.predicate import Predicate
from lancelake.format.fragment import Fragment
from lancelake.format.schema import Schema
from lancelake.scan.outputs import ColumnOutput
from lancelake.storage.table_files import FileAt, TableFiles
from lancelake.table.change_feed.request import ChangeKind


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedSpec:
    """What every task of a feed does; `last` is the schema of the last version."""

    last: Schema
    outputs: tuple[ColumnOutput, ...]
    schema: pa.Schema
    predicate: Predicate | None
    kinds: frozenset[ChangeKind]
    batch_rows: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """The version that changes belong to."""

    version: int
    timestamp_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionFiles:
    """A version to read from; `view` is how it holds the columns of the last version."""

    version: int
    files: TableFiles
    manifest_at: FileAt
    view: Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A fragment of a version."""

    at: VersionFiles
    fragment: Fragment


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsTask:
    """Rows that came or went: the live rows of a fragment that none of `others` has."""

    spec: FeedSpec
    commit: Commit
    kind: ChangeKind
    side: Side
    others: tuple[Side, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTask:
    """Rows that two fragments share and that changed from the one to the other.

    A row is marked when its last update is not the same on both sides. `marks_tell` says that
    marked rows are changed ones; all others change when a column of `compared` does, and those
    without a mark are looked at only when `doubts_unmarked` says so.
    """

    spec: FeedSpec
    commit: Commit
    before: Side
    after: Side
    compared: tuple[str, ...]
    marks_tell: bool
    doubts_unmarked: bool


ChangeTask = RowsTask | PairTask


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFeedPlan:
    """The tasks in the order of commits; within one, deletes, then updates, then inserts."""

    spec: FeedSpec
    begin: int
    end: int
    tasks: tuple[ChangeTask, ...]

    @property
    def schema(self) -> pa.Schema:
        """The columns that the feed returns."""
        return self.spec.schema


def needed_columns(spec: FeedSpec) -> tuple[str, ...]:
    """Return the columns of the table that outputs and filter look at."""
    filters = () if spec.predicate is None else spec.predicate.paths
    tops = [output.path[0] for output in spec.outputs] + [path[0] for path in filters]
    known = set(spec.last.names)
    return tuple(name for name in dict.fromkeys(tops) if name in known)
