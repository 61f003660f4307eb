"""The shape of an index kind: what it accepts, how it is built, searched, merged and remapped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from lancelake.data.codec.index_file import SegmentFolder
from lancelake.expr.condition import Leaf
from lancelake.format.index_meta import IndexDetails, IndexFile
from lancelake.index.answer import Answer
from lancelake.index.key_range import KeyRange
from lancelake.index.row_ids import RowIds, U64Array

Parameters = Mapping[str, Any]

VALUE = "value"
ROW_ID = "_rowid"
"""Columns of the batches that an index is built from: the indexed value, and what is stored."""


class Order(Enum):
    """The order in which a kind wants the rows that it is built from."""

    VALUE = "value"
    ROW = "row"


class IdKind(Enum):
    """What an index stores for a row."""

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
    """Rows to index: batches of `VALUE` and `ROW_ID`, in the order that the kind asks for."""

    dtype: pa.DataType
    batches: Iterable[pa.RecordBatch]
    parameters: Parameters = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFacts:
    """What an entry of the manifest, and the table, say about a segment."""

    folder: SegmentFolder
    dtype: pa.DataType
    details: IndexDetails | None
    index_version: int
    fragment_rows: Callable[[int], int | None] = lambda _: None


RowMap = Callable[[U64Array], U64Array]
"""Old row ids -> new ones; `DROPPED` where a row is gone."""

DROPPED = (1 << 64) - 1


class OpenSegment(Protocol):
    """A segment that can be searched."""

    def answer(self, leaf: Leaf) -> Answer | None:
        """Answer a condition about the indexed column; None if the kind does not serve it."""
        ...

    def entries(self) -> Iterator[pa.RecordBatch]:
        """Stream what is indexed in the order of the kind, to be merged into another segment."""
        ...

    def statistics(self) -> Mapping[str, Any]:
        """Return the numbers that official releases show for a segment of this kind."""
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


@runtime_checkable
class RangeSegment(Protocol):
    """A segment that answers several bounds on its column at once, which is cheaper than each."""

    def answer_range(self, wanted: KeyRange) -> Answer:
        """Answer a condition that is true for the keys of a range."""
        ...


class IndexKind(Protocol):
    """One kind of index."""

    name: str
    """As users name it, in capitals."""
    details_type: str
    """Last part of the type URL of its details, in lower case."""
    max_version: int
    order: Order

    def accepts(self, dtype: pa.DataType) -> bool:
        """Whether columns of a type can be indexed."""
        ...

    def stored_ids(self, index_version: int, *, has_stable_row_ids: bool) -> IdKind:
        """Tell what a segment of a version stores in a table."""
        ...

    def build(self, rows: BuildInput, folder: SegmentFolder) -> BuiltSegment:
        """Write the files of a segment."""
        ...

    def open(self, facts: SegmentFacts) -> OpenSegment:
        """Open a segment; what a search needs is read when it is searched."""
        ...

    def merge(
        self,
        segments: Sequence[tuple[SegmentFacts, RowIds | None]],
        rows: BuildInput,
        folder: SegmentFolder,
    ) -> BuiltSegment:
        """Write one segment of several and of new rows.

        Of a segment only ids of the set beside it are taken, all where there is none.
        """
        ...

    def remap(
        self, facts: SegmentFacts, row_map: RowMap, folder: SegmentFolder
    ) -> BuiltSegment | None:
        """Write a segment with other row ids; None for a kind that must be built again."""
        ...
