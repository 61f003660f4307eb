"""Interface of index kinds: build, search, merge and remap of segments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from lancelake.data.codec.index_file import SegmentFolder
from lancelake.engine.stages import Stages
from lancelake.expr.condition import Leaf
from lancelake.format.index_meta import IndexDetails, IndexFile
from lancelake.index.answer import Answer
from lancelake.index.key_range import KeyPoints, KeyRange
from lancelake.index.order import Positions
from lancelake.index.row_ids import RowIds, U64Array

Parameters = Mapping[str, Any]

VALUE = "value"
ROW_ID = "_rowid"
"""Columns of the batches that an index is built from: the indexed value and the row id."""


class Order(Enum):
    """Order of the rows that an index is built from."""

    VALUE = "value"
    ROW = "row"


class IdKind(Enum):
    """Row reference that an index stores."""

    ADDRESS = "address"
    STABLE_ID = "stable id"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltSegment:
    """A segment whose files are complete."""

    details: IndexDetails
    index_version: int
    files: tuple[IndexFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildInput:
    """Rows to index: batches of `VALUE` and `ROW_ID`, in the order of the kind."""

    dtype: pa.DataType
    batches: Iterable[pa.RecordBatch]
    parameters: Parameters = field(default_factory=dict)
    num_rows: int = 0
    """Number of the rows, about. Kinds of row order may read `batches` several times."""
    stages: Stages = field(default_factory=Stages)
    """Where kinds that build in stages report them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFacts:
    """Metadata of a segment from its manifest entry and the table."""

    folder: SegmentFolder
    dtype: pa.DataType
    details: IndexDetails | None
    index_version: int
    fragment_rows: Callable[[int], int | None] = lambda _: None


RowMap = Callable[[U64Array], U64Array]
"""Map of old row ids to new ones; `DROPPED` for removed rows."""

DROPPED = (1 << 64) - 1


class OpenSegment(Protocol):
    """A segment that can be searched."""

    def answer(self, leaf: Leaf) -> Answer | None:
        """Search a condition on the indexed column; None if the kind does not support it."""
        ...

    def entries(self) -> Iterator[pa.RecordBatch]:
        """Stream the indexed rows in the order of the kind, for a merge."""
        ...

    def statistics(self) -> Mapping[str, Any]:
        """Return the statistics that official releases show for a segment of this kind."""
        ...

    def parameters(self) -> Parameters:
        """Return the parameters that the segment was built with."""
        ...


@runtime_checkable
class CachedSegment(Protocol):
    """A segment of which searches keep parts in memory."""

    def prewarm(self) -> None:
        """Read what searches keep."""
        ...


# Each search asks for these; for a protocol the check takes as long as finding a page.
class CountableSegment(ABC):
    """A segment with one entry for each row, by value."""

    @abstractmethod
    def num_entries(self) -> int:
        """Return how many entries there are."""

    @abstractmethod
    def ids_in_range(self, wanted: KeyRange) -> U64Array:
        """Return the row ids of the keys of a range, in any order."""


class RangeSegment(ABC):
    """A segment that answers several bounds on its column together, which is cheaper."""

    @abstractmethod
    def answer_range(self, wanted: KeyRange) -> Answer:
        """Answer a condition that is true for the keys of a range."""

    @abstractmethod
    def share_read(self, wanted: KeyRange) -> float:
        """Estimate the share of the segment, from 0 to 1, that is read to answer that."""

    @abstractmethod
    def num_rows(self) -> int:
        """Return about how many rows are indexed."""


class PointSegment(ABC):
    """A segment that stores the key of each row."""

    @abstractmethod
    def rows_at(self, wanted: KeyPoints) -> tuple[Positions, U64Array]:
        """Return the rows with one of several keys: the number of the key, and the row id."""


@runtime_checkable
class PagedSegment(Protocol):
    """A segment whose pages are found by bounds that another file has."""

    def has_stale_bounds(self) -> bool:
        """Whether pages have rows outside of their bounds."""
        ...


@runtime_checkable
class RecountedSegment(Protocol):
    """A segment of which early releases lost rows."""

    def early_rows(self) -> RowIds | None:
        """Return all rows of a segment that an early release wrote; None for others."""
        ...


@runtime_checkable
class OneValueSegment(Protocol):
    """A segment that stores each row under one value, unless another writer left an old one."""

    def has_rows_twice(self) -> bool:
        """Whether a row is stored under two values."""
        ...


@runtime_checkable
class TrainedKind(Protocol):
    """A kind whose segments are encoded by a model that was trained on their rows."""

    def trained(self, rows: BuildInput) -> Parameters:
        """Train on a sample of rows; builds with the parameters returned have the same model."""
        ...

    def has_one_model(self, segments: Sequence[SegmentFacts]) -> bool:
        """Whether segments were encoded by the same model, so that they can be merged."""
        ...

    def estimated_recall(self, segment: SegmentFacts, values: pa.Array) -> float | None:
        """Return the share of nearest rows that the model of a segment finds among a sample.

        None if it cannot be estimated.
        """
        ...


@runtime_checkable
class ChangedKind(Protocol):
    """A kind whose files had another layout in early releases, under the same version."""

    def reads(self, folder: SegmentFolder) -> bool:
        """Whether the files of a segment have a layout that is read."""
        ...


class IndexKind(Protocol):
    """One kind of index."""

    name: str
    """Name of the kind, in capitals."""
    details_type: str
    """Last part of the type URL of its details, in lower case."""
    max_version: int
    order: Order

    def accepts(self, dtype: pa.DataType) -> bool:
        """Whether columns of a type can be indexed."""
        ...

    def stored_ids(self, index_version: int, *, has_stable_row_ids: bool) -> IdKind:
        """Return which row references a segment of a version stores."""
        ...

    def build(self, rows: BuildInput, folder: SegmentFolder) -> BuiltSegment:
        """Write the files of a segment."""
        ...

    def open(self, facts: SegmentFacts) -> OpenSegment:
        """Open a segment; files are read by searches."""
        ...

    def merge(
        self,
        segments: Sequence[tuple[SegmentFacts, RowIds | None]],
        rows: BuildInput,
        folder: SegmentFolder,
    ) -> BuiltSegment:
        """Merge several segments and new rows into one.

        Each segment comes with the set of ids to keep, or None for all.
        """
        ...

    def remap(
        self, facts: SegmentFacts, row_map: RowMap, folder: SegmentFolder
    ) -> BuiltSegment | None:
        """Write a segment with other row ids; None for a kind that must be built again."""
        ...
