"""Change feed tasks as frozen, picklable values."""

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
    """Settings shared by all tasks of a feed; `last` is the schema of the last version."""

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
    """A version to read from; `view` maps the columns of the last version to it."""

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
    """Inserted or deleted rows: the live rows of a fragment that are in none of `others`."""

    spec: FeedSpec
    commit: Commit
    kind: ChangeKind
    side: Side
    others: tuple[Side, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTask:
    """Rows that two fragments share and that changed between them.

    A row is marked if its last updated version differs between the two sides. `marks_tell` means
    that marked rows are changed rows; any other row changed if a column of `compared` differs, and
    rows without a mark are only examined if `doubts_unmarked` is set.
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
    """The tasks in commit order; within a commit, deletes, then updates, then inserts."""

    spec: FeedSpec
    begin: int
    end: int
    tasks: tuple[ChangeTask, ...]

    @property
    def schema(self) -> pa.Schema:
        """The columns that the feed returns."""
        return self.spec.schema


def needed_columns(spec: FeedSpec) -> tuple[str, ...]:
    """Return the columns of the table that outputs and filter need."""
    filters = () if spec.predicate is None else spec.predicate.paths
    tops = [output.path[0] for output in spec.outputs] + [path[0] for path in filters]
    known = set(spec.last.names)
    return tuple(name for name in dict.fromkeys(tops) if name in known)
