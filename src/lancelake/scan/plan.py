"""Scan plan: the tasks of a scan as frozen, picklable values."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
from pyroaring import AbstractBitMap, FrozenBitMap

from lancelake.expr.predicate import Predicate
from lancelake.format.fragment import Fragment
from lancelake.format.schema import Schema
from lancelake.scan.index_search.search import IndexSearch
from lancelake.scan.outputs import Output
from lancelake.scan.request import Ordering
from lancelake.scan.row_width import Widths
from lancelake.storage.table_files import FileAt, TableFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanSpec:
    """Specification that all tasks of a scan share."""

    files: TableFiles
    manifest_at: FileAt
    version: int
    table_schema: Schema
    widths: Widths
    outputs: tuple[Output, ...]
    output_schema: pa.Schema
    predicate: Predicate | None
    late: bool | None
    batch_rows: int | None
    batch_readahead: int | None
    has_stable_row_ids: bool
    include_deleted_rows: bool
    remembers_small: bool = False
    valued_schema: pa.Schema | None = None
    """Schema of rows with blob values, if those are requested."""

    @property
    def row_schema(self) -> pa.Schema:
        """Schema of the rows that tasks yield."""
        return self.output_schema if self.valued_schema is None else self.valued_schema


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanTask:
    """Some rows of one fragment."""

    spec: ScanSpec
    fragment: Fragment
    start: int = 0
    stop: int | None = None
    live_before: int = 0
    row_limit: int | None = None
    rows: FrozenBitMap | None = None
    """Offsets of the rows to read; None for all live rows."""
    recheck: bool = True
    """Whether the predicate has to be evaluated for `rows`; otherwise they are known to match."""

    @property
    def most_rows(self) -> int | None:
        """How many rows the task looks at, at most; None if that is not known."""
        if self.rows is not None:
            return len(self.rows)
        stop = self.fragment.physical_rows if self.stop is None else self.stop
        return None if stop is None else stop - self.start

    def matching(self, rows: AbstractBitMap) -> ScanTask:
        """Return the task for rows that are known to match."""
        return replace(self, rows=FrozenBitMap(rows), recheck=False)

    def within(self, rows: AbstractBitMap) -> ScanTask:
        """Return the task for those of its rows that are among these; its predicate still holds."""
        kept = rows if self.rows is None else self.rows & rows
        return replace(self, rows=FrozenBitMap(kept))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanPlan:
    """Tasks in row order, and the steps after them: offset, limit and order."""

    spec: ScanSpec
    tasks: tuple[ScanTask, ...]
    skip: int = 0
    limit: int | None = None
    order_by: tuple[Ordering, ...] = ()
    schema: pa.Schema
    fragment_readahead: int
    strict_batch_size: bool = False
    index_search: IndexSearch | None = None
    """What indices said about the filter; None if none was asked."""
