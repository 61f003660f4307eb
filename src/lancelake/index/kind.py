"""Port of index kinds: what each builds, opens, searches, merges and remaps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import pyarrow as pa
from pyroaring import BitMap

from lancelake.data.codec.index_file import SegmentFolder
from lancelake.engine.port import Stages
from lancelake.errors import InvalidRequestError, suggestion
from lancelake.expr.condition import Leaf
from lancelake.format.arrow_schema import public_field
from lancelake.format.index_meta import IndexDetails, IndexFile, IndexMetadata
from lancelake.format.schema import Field
from lancelake.index.order import KeyPoints, KeyRange, Positions
from lancelake.index.row_sets import Answer, RowIds, U64Array

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
    index_version: int = 0
    """Version of the segment, where it decides which row references are stored."""
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
    is_trained: bool = True
    """False for an index of a kind that is trained, of which only the parameters are known."""


RowMap = Callable[[U64Array], U64Array]
"""Map of old row ids to new ones; `DROPPED` for removed rows."""

DROPPED = (1 << 64) - 1


class OpenSegment(ABC):
    """A segment that can be searched; what most kinds do not have is nothing by default."""

    @abstractmethod
    def entries(self) -> Iterator[pa.RecordBatch]:
        """Stream the indexed rows in the order of the kind, for a merge."""

    @abstractmethod
    def statistics(self) -> Mapping[str, Any]:
        """Return the statistics that official releases show for a segment of this kind."""

    def answer(self, leaf: Leaf) -> Answer | None:
        """Search a condition on the indexed column; None if the kind does not support it."""
        return None

    def parameters(self) -> Parameters:
        """Return the parameters that the segment was built with."""
        return {}

    def prewarm(self) -> None:  # noqa: B027  # most segments keep nothing
        """Read what searches keep in memory."""

    def verify(self) -> None:  # noqa: B027  # most have no more than entries
        """Read what searches read besides the entries; raise CorruptTableError for damage."""

    def fragments(self) -> BitMap | None:
        """Return the fragments that the files name as those that they were built from.

        None for files that name no fragments.
        """
        return None

    def has_rows_twice(self) -> bool:
        """Whether a row is stored under two values, of which another writer left the old one."""
        return False

    def has_stale_bounds(self) -> bool:
        """Whether pages have rows outside of the bounds that another file states."""
        return False

    def early_rows(self) -> RowIds | None:
        """Return all rows of a segment of which an early release may have lost some.

        None for other segments.
        """
        return None


class SortedSegment(OpenSegment):
    """A segment with one entry for each row, in the order of the keys of their values."""

    @abstractmethod
    def num_entries(self) -> int:
        """Return how many entries there are."""

    @abstractmethod
    def num_rows(self) -> int:
        """Return about how many rows are indexed."""

    @abstractmethod
    def ids_in_range(self, wanted: KeyRange) -> U64Array:
        """Return the row ids of the keys of a range, in any order."""

    @abstractmethod
    def answer_range(self, wanted: KeyRange) -> Answer:
        """Answer a condition that is true for the keys of a range."""

    @abstractmethod
    def share_read(self, wanted: KeyRange) -> float:
        """Estimate the share of the segment, from 0 to 1, that is read to answer that."""

    @abstractmethod
    def rows_at(self, wanted: KeyPoints) -> tuple[Positions, U64Array]:
        """Return the rows with one of several keys: the number of the key, and the row id."""


Segments = Sequence[tuple[SegmentFacts, RowIds | None]]
"""Segments, each with the set of ids to keep, or None for all."""


class IndexKind(ABC):
    """One kind of index; what most kinds do not have is nothing by default."""

    name: str
    """Name of the kind, in capitals."""
    details_type: str
    """Last part of the type URL of its details, in lower case."""
    max_version: int = 0
    order: Order = Order.ROW
    is_ranked: bool = False
    """Whether searches rank the rows of an index, and conditions are not answered by it."""
    is_trained: bool = False
    """Whether segments are encoded by a model that is trained on their rows."""
    has_stages: bool = False
    """Whether a build reports its stages; of other builds the rows read are counted."""
    has_documents: bool = False
    """Whether the values are documents, which may be in the structs of a list."""
    has_early_layouts: bool = False
    """Whether early releases wrote files of another layout under the same version."""

    @abstractmethod
    def accepts(self, dtype: pa.DataType) -> bool:
        """Whether columns of a type can be indexed."""

    @abstractmethod
    def open(self, facts: SegmentFacts) -> OpenSegment:
        """Open a segment; files are read by searches."""

    @abstractmethod
    def merge(self, segments: Segments, rows: BuildInput, folder: SegmentFolder) -> BuiltSegment:
        """Merge several segments and new rows into one."""

    def build(self, rows: BuildInput, folder: SegmentFolder) -> BuiltSegment:
        """Write the files of a segment."""
        return self.merge((), rows, folder)

    def remap(
        self, facts: SegmentFacts, row_map: RowMap, folder: SegmentFolder
    ) -> BuiltSegment | None:
        """Write a segment with other row ids; None for a kind that must be built again."""
        return None

    def can_merge(self, segments: Sequence[SegmentFacts]) -> bool:
        """Whether segments were built by the same rules and the same model."""
        return True

    def stored_ids(self, index_version: int, *, has_stable_row_ids: bool) -> IdKind:
        """Return which row references a segment of a version stores."""
        return IdKind.STABLE_ID if has_stable_row_ids else IdKind.ADDRESS

    def new_version(self, *, has_stable_row_ids: bool) -> int:
        """Return the version of new segments, if it decides which row references they store."""
        return 0

    def supports(self, details: IndexDetails) -> bool:
        """Whether an index with these details is searched."""
        return True

    def reads(self, folder: SegmentFolder) -> bool:
        """Whether the files of a segment have a layout that is read."""
        return True

    def wrote(self, names: Collection[str], dtype: pa.DataType) -> bool:
        """Whether files are those of a segment, whose entry has no details in some releases."""
        return False

    def is_untrained(self, entry: IndexMetadata) -> bool:
        """Whether an index has no files yet: it was created without rows, or without training."""
        return False

    def train(self, rows: BuildInput) -> Parameters:
        """Train on a sample of rows; builds with the parameters returned have the same model."""
        raise InvalidRequestError(f"{self.name} indices are not trained")

    def untrained(self, rows: BuildInput) -> BuiltSegment:
        """Return a segment without files, which is trained when it is refreshed."""
        raise InvalidRequestError(f"{self.name} indices are not trained")

    def estimated_recall(self, segment: SegmentFacts, values: pa.Array) -> float | None:
        """Return the share of nearest rows that the model of a segment finds among a sample.

        None if it cannot be estimated.
        """
        return None

    def write_part(self, rows: BuildInput, folder: SegmentFolder, first_fragment: int) -> None:
        """Write a part of a segment, to be merged with others in the same folder."""
        raise InvalidRequestError(f"{self.name} indices are not built in parts")

    def merge_parts(
        self, folder: SegmentFolder, names: Iterable[str], stages: Stages
    ) -> Sequence[str]:
        """Merge the parts among the files of a folder; return the names of files to remove."""
        raise InvalidRequestError(f"{self.name} indices are not built in parts")


def indexed_type(field: Field) -> pa.DataType:
    """Return the Arrow type of the values that an index of a column stores."""
    dtype = public_field(field).type
    is_extension = isinstance(dtype, pa.BaseExtensionType) and not field.is_json
    return dtype.storage_type if is_extension else dtype


def ensure_known(kind: str, parameters: Parameters, names: Collection[str]) -> None:
    """Raise for a parameter that a kind does not have."""
    for name in parameters:
        if name not in names:
            advice = suggestion(name, sorted(names), "parameters")
            raise InvalidRequestError(f"{kind} has no parameter {name!r}", action=advice)


def count(kind: str, parameters: Parameters, name: str, default: int) -> int:
    """Return a parameter that is a positive row count."""
    value = parameters.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidRequestError(f"{name} of {kind} must be a positive integer, not {value!r}")
    return value


def probability(kind: str, parameters: Parameters, name: str, default: float) -> float:
    """Return a parameter that is a probability between 0 and 1."""
    value = parameters.get(name, default)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0.0 < value < 1.0:
        raise InvalidRequestError(f"{name} of {kind} must be between 0 and 1, not {value!r}")
    return float(value)
