"""ZONEMAP index: minimum and maximum of each zone, for pruning."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lancelake.data.codec.index_file import IndexFileReader, SegmentFolder
from lancelake.expr.condition import (
    Comparison,
    IsNull,
    Leaf,
    Membership,
    Operator,
    TextMatch,
    TextTest,
    Truth,
)
from lancelake.format.index_meta import IndexDetails
from lancelake.index.answer import Answer
from lancelake.index.kind import (
    BuildInput,
    BuiltSegment,
    IdKind,
    IndexKind,
    Order,
    Parameters,
    RowMap,
    SegmentFacts,
)
from lancelake.index.row_ids import RowIds
from lancelake.index.scalar import parameters
from lancelake.index.scalar.zone_bounds import ZoneBounds, bounds_of, opposite
from lancelake.index.scalar.zones import BOUNDS, ZoneFileWriter, ZoneRows, cut
from lancelake.proto import index_pb2

FILE = "zonemap.lance"
ROWS_PER_ZONE = "rows_per_zone"
DEFAULT_ROWS_PER_ZONE = 8192
_TYPE_URL = "/lance.table.ZoneMapIndexDetails"
_ZONES_AT_ONCE = 4096


def _schema(dtype: pa.DataType) -> pa.Schema:
    return pa.schema(
        [
            pa.field("min", dtype),
            pa.field("max", dtype),
            pa.field("null_count", pa.uint32(), nullable=False),
            pa.field("nan_count", pa.uint32(), nullable=False),
            *BOUNDS,
        ]
    )


class _ZoneMap:
    """The kind ZONEMAP."""

    name = "ZONEMAP"
    details_type = "zonemapindexdetails"
    max_version = 0
    order = Order.ROW

    def accepts(self, dtype: pa.DataType) -> bool:
        """Whether columns of a type can be indexed: every type whose values have an order."""
        types = pa.types
        return bool(
            types.is_primitive(dtype)
            or types.is_string(dtype)
            or types.is_large_string(dtype)
            or types.is_binary(dtype)
            or types.is_large_binary(dtype)
            or types.is_fixed_size_binary(dtype)
            or types.is_decimal128(dtype)
            or types.is_decimal256(dtype)
        )

    def stored_ids(self, index_version: int, *, has_stable_row_ids: bool) -> IdKind:
        """Return the row references of a segment, which are always addresses."""
        return IdKind.ADDRESS

    def build(self, rows: BuildInput, folder: SegmentFolder) -> BuiltSegment:
        """Write the zones of rows, which come in their order."""
        return self.merge((), rows, folder)

    def open(self, facts: SegmentFacts) -> _Segment:
        """Open a segment."""
        return _Segment(facts)

    def merge(
        self,
        segments: Sequence[tuple[SegmentFacts, RowIds | None]],
        rows: BuildInput,
        folder: SegmentFolder,
    ) -> BuiltSegment:
        """Write the zones of segments whose fragments are kept, and those of new rows."""
        parameters.ensure_known(self.name, rows.parameters, (ROWS_PER_ZONE,))
        olds = [(_Segment(facts), keep) for facts, keep in segments]
        default = olds[0][0].rows_per_zone if olds else DEFAULT_ROWS_PER_ZONE
        size = parameters.count(self.name, rows.parameters, ROWS_PER_ZONE, default)
        writer = ZoneFileWriter(folder, FILE, _schema(rows.dtype), _ZONES_AT_ONCE)
        for old, keep in olds:
            writer.add_segment(old.entries(), old.rows, keep)
        for zone in cut(rows.batches, size):
            found, nulls = bounds_of(zone.values), zone.values.null_count
            counts = nulls, found.nan_count
            writer.add(zone, (found.least, found.greatest, *counts, *zone.bounds))
        entry = writer.finish({ROWS_PER_ZONE: str(size)})
        details = _details(size, has_null_bitmap=writer.knows_nulls)
        return BuiltSegment(details=details, index_version=0, files=(entry,))

    def remap(
        self, facts: SegmentFacts, row_map: RowMap, folder: SegmentFolder
    ) -> BuiltSegment | None:
        """Return None: rows that move leave their zones."""
        return None


def _details(rows_per_zone: int, *, has_null_bitmap: bool) -> IndexDetails:
    message = index_pb2.ZoneMapIndexDetails(
        rows_per_zone=rows_per_zone, use_seeds=False, has_null_bitmap=has_null_bitmap
    )
    return IndexDetails(type_url=_TYPE_URL, value=message.SerializeToString())


class _Segment:
    """A segment that can be searched."""

    def __init__(self, facts: SegmentFacts) -> None:
        self._facts = facts

    @functools.cached_property
    def rows(self) -> ZoneRows:
        """The rows of the zones."""
        return ZoneRows.read(self._file, self._facts, FILE)

    @functools.cached_property
    def rows_per_zone(self) -> int:
        """Rows per zone."""
        text = self._file.metadata.get(ROWS_PER_ZONE, "")
        return int(text) if text.isdecimal() else DEFAULT_ROWS_PER_ZONE

    @functools.cached_property
    def _file(self) -> IndexFileReader:
        return self._facts.folder.open(FILE)

    @functools.cached_property
    def _counts(self) -> tuple[Any, Any]:
        names = "null_count", "nan_count"
        self._file.require(*names)
        table = self._file.read(columns=names)
        nulls, nans = (np.asarray(table.column(name), dtype=np.uint64) for name in names)
        return nulls, nans

    @functools.cached_property
    def _bounds(self) -> ZoneBounds:
        names = "min", "max"
        self._file.require(*names)
        least, greatest = (c.combine_chunks() for c in self._file.read(columns=names).columns)
        nulls, nans = self._counts
        return ZoneBounds.of(
            least, greatest, has_number=self.rows.lengths > nulls + nans, has_nan=nans > 0
        )

    def answer(self, leaf: Leaf) -> Answer | None:
        """Search a condition: the zones in which it can be true or false."""
        match leaf:
            case IsNull():
                nulls, _ = self._counts
                return self.rows.answer_is_null(nulls > 0, nulls < self.rows.lengths)
            case Truth():
                return self._compared(Operator.EQUAL, pa.scalar(value=True))
            case Comparison():
                return self._compared(leaf.operator, leaf.value)
            case Membership():
                return self._membership(leaf)
            case TextMatch() if leaf.test is TextTest.STARTS_WITH:
                found = self._bounds.may_start_with(leaf.text.encode())
                return self.rows.answer(found, self._bounds.has_value)
            case _:
                return None

    def _compared(self, operator: Operator, value: pa.Scalar) -> Answer | None:
        if not self._is_of(value.type):
            return None
        bounds = self._bounds
        is_false = bounds.may_hold(opposite(operator), value)
        return self.rows.answer(bounds.may_hold(operator, value), is_false)

    def _membership(self, leaf: Membership) -> Answer | None:
        if not self._is_of(leaf.values.type):
            return None
        # With a null in the list nothing is known to be outside of it.
        is_false = self._bounds.has_value & (not leaf.has_null)
        return self.rows.answer(self._bounds.may_be_in(leaf.values), is_false)

    def _is_of(self, dtype: pa.DataType) -> bool:
        self._file.require("min")
        return bool(self._file.schema.field("min").type == dtype)

    def entries(self) -> Iterator[pa.RecordBatch]:
        """Stream the zones."""
        self._file.require(*_schema(pa.null()).names)
        yield from self._file.batches(batch_rows=_ZONES_AT_ONCE)

    def fragments(self) -> BitMap:
        """Return the fragments that have a zone."""
        return self.rows.named_fragments

    def statistics(self) -> Mapping[str, Any]:
        """Return the number of zones, and of rows in each."""
        return {"num_zones": self._file.num_rows, "rows_per_zone": self.rows_per_zone}

    def parameters(self) -> Parameters:
        """Return the number of rows of a zone."""
        return {ROWS_PER_ZONE: self.rows_per_zone}


ZONE_MAP: IndexKind = _ZoneMap()
