"""ZONEMAP indices.

The zeros are equal. NaN is greater than every number in conditions, but official releases take
NaN with a sign for less than every number, so a zone that has NaN may satisfy every order. They
mark such a zone by NaN as its greatest value; negative NaN may be its least value instead.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.data.arrays.batches import search_sorted
from lancelake.data.codec.index_file import SegmentFolder
from lancelake.expr import condition
from lancelake.expr.literals import is_float
from lancelake.format.index_meta import IndexDetails
from lancelake.index import kind
from lancelake.index import kind as index_kind
from lancelake.index.row_sets import Answer
from lancelake.index.scalar.zones import BOUNDS, Mask, ZoneFileWriter, ZoneKind, ZoneSegment, cut
from lancelake.proto import index_pb2

_OR_LOOP = 32  # values of a list that are compared one by one
_TIMES = {32: pa.int32(), 64: pa.int64()}
_FLOATS = {2: np.float16, 4: np.float32, 8: np.float64}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Least and greatest value of an array, None without any, and how many are NaN."""

    least: pa.Scalar
    greatest: pa.Scalar
    nan_count: int


def bounds_of(values: pa.Array) -> Bounds:
    """Return the bounds of values, so wide that every release finds both zeros and all NaN."""
    if pa.types.is_floating(values.type):
        return _float_bounds(values)
    if pa.types.is_duration(values.type):
        inner = bounds_of(values.cast(pa.int64()))
        return Bounds(
            least=inner.least.cast(values.type),
            greatest=inner.greatest.cast(values.type),
            nan_count=0,
        )
    if len(values) and not values.null_count and _is_integral(values.type):
        return _integral_bounds(values)
    ends = pc.min_max(values)
    return Bounds(least=ends["min"], greatest=ends["max"], nan_count=0)


def _is_integral(dtype: pa.DataType) -> bool:
    """Whether values are integers, or stored as signed ones."""
    types = pa.types
    return bool(types.is_integer(dtype) or (types.is_temporal(dtype) and dtype.bit_width in _TIMES))


def _integral_bounds(values: pa.Array) -> Bounds:
    """Return the bounds of integers and times without null, several times as fast as Arrow."""
    is_time = pa.types.is_temporal(values.type)
    stored: Any = np.asarray(values.view(_TIMES[values.type.bit_width]) if is_time else values)
    least, greatest = values[int(stored.argmin())], values[int(stored.argmax())]
    return Bounds(least=least, greatest=greatest, nan_count=0)


def _float_bounds(values: pa.Array) -> Bounds:
    dtype = values.type
    numbers: Any = np.asarray(values.drop_null())
    is_nan = np.isnan(numbers)
    plain, nan_count = numbers[~is_nan], int(is_nan.sum())
    least, greatest = (plain.min(), plain.max()) if len(plain) else (np.nan, np.nan)
    if np.any(is_nan & np.signbit(numbers)):
        least = -np.inf
    scalar = _FLOATS[dtype.bit_width // 8]
    if not len(numbers):
        none = pa.scalar(None, dtype)
        return Bounds(least=none, greatest=none, nan_count=0)
    return Bounds(
        least=pa.scalar(scalar(least if least else -0.0), dtype),
        greatest=pa.scalar(scalar(np.nan if nan_count else greatest if greatest else 0.0), dtype),
        nan_count=nan_count,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneBounds:
    """Bounds of many zones; what is null or NaN does not bound anything."""

    least: pa.Array
    greatest: pa.Array
    has_number: Mask
    """Whether there may be a value that is not NaN."""
    has_nan: Mask

    @staticmethod
    def of(least: pa.Array, greatest: pa.Array, *, has_number: Mask, has_nan: Mask) -> ZoneBounds:
        """Return the bounds of zones, in a form that can be compared."""
        return ZoneBounds(
            least=_comparable(least),
            greatest=_comparable(greatest),
            has_number=has_number,
            has_nan=has_nan,
        )

    @property
    def has_value(self) -> Mask:
        """Whether a zone may have a row that is not null."""
        return self.has_number | self.has_nan

    def may_hold(self, operator: condition.Operator, value: pa.Scalar) -> Mask:
        """Return which zones may have a value for which a comparison with a constant is true."""
        if is_float(value.type) and np.isnan(value.as_py()):
            is_negative = bool(np.signbit(value.as_py()))
            return self._may_hold_nan(operator, is_negative=is_negative)
        constant = _comparable(pa.array([value], value.type))[0]
        numbers = self.has_number & self._may_hold_number(operator, constant)
        return numbers if operator is condition.Operator.EQUAL else numbers | self.has_nan

    def may_be_in(self, values: pa.Array) -> Mask:
        """Return which zones may have one of these values."""
        may_hold = np.zeros(len(self.least), dtype=np.bool_)
        if is_float(values.type):
            is_nan = pc.is_nan(values)
            may_hold |= self.has_nan & bool(pc.any(is_nan).as_py())
            values = values.filter(pc.invert(is_nan))
        if len(values) <= _OR_LOOP or pa.types.is_decimal(values.type):
            for value in values:
                may_hold |= self.may_hold(condition.Operator.EQUAL, value)
            return may_hold
        wanted = _comparable(values)
        wanted = wanted.take(pc.sort_indices(wanted))
        below = search_sorted(wanted, _fill(self.least, wanted[0]), side="left")
        up_to = search_sorted(wanted, _fill(self.greatest, wanted[-1]), side="right")
        return may_hold | (self.has_number & _or_unknown(pc.less(below, up_to)))

    def may_start_with(self, prefix: bytes) -> Mask:
        """Return which zones may have a string with this UTF-8 prefix."""
        least, greatest = self.least.cast(pa.large_binary()), self.greatest.cast(pa.large_binary())
        start = pa.scalar(prefix, pa.large_binary())
        is_after = self.has_number & _or_unknown(pc.greater_equal(greatest, start))
        end = _after_all_with(prefix)
        if end is None:
            return is_after
        return is_after & _or_unknown(pc.less(least, pa.scalar(end, pa.large_binary())))

    def _may_hold_number(self, operator: condition.Operator, value: pa.Scalar) -> Mask:
        least, greatest = _without_nan(self.least), _without_nan(self.greatest)
        match operator:
            case condition.Operator.EQUAL:
                above = _or_unknown(pc.less_equal(least, value))
                return above & _or_unknown(pc.greater_equal(greatest, value))
            case condition.Operator.NOT_EQUAL:
                is_other = _or_unknown(pc.not_equal(least, value))
                return is_other | _or_unknown(pc.not_equal(greatest, value))
            case condition.Operator.LESS:
                return _or_unknown(pc.less(least, value))
            case condition.Operator.LESS_EQUAL:
                return _or_unknown(pc.less_equal(least, value))
            case condition.Operator.GREATER:
                return _or_unknown(pc.greater(greatest, value))
            case condition.Operator.GREATER_EQUAL:
                return _or_unknown(pc.greater_equal(greatest, value))
            case _:
                assert_never(operator)

    def _may_hold_nan(self, operator: condition.Operator, *, is_negative: bool) -> Mask:
        """Compare with NaN: numbers are below the positive one and above the negative one.

        The NaN of a zone may differ from the constant in sign or bits.
        """
        upward = operator in (condition.Operator.GREATER, condition.Operator.GREATER_EQUAL)
        if operator is condition.Operator.EQUAL or (
            upward is not is_negative and operator in _ORDERED
        ):
            return self.has_nan
        return self.has_value


def opposite(operator: condition.Operator) -> condition.Operator:
    """Return the operator that is true where another is false."""
    return _OPPOSITE[operator]


_ORDERED = (
    condition.Operator.LESS,
    condition.Operator.LESS_EQUAL,
    condition.Operator.GREATER,
    condition.Operator.GREATER_EQUAL,
)
_OPPOSITE = {
    condition.Operator.EQUAL: condition.Operator.NOT_EQUAL,
    condition.Operator.NOT_EQUAL: condition.Operator.EQUAL,
    condition.Operator.LESS: condition.Operator.GREATER_EQUAL,
    condition.Operator.LESS_EQUAL: condition.Operator.GREATER,
    condition.Operator.GREATER: condition.Operator.LESS_EQUAL,
    condition.Operator.GREATER_EQUAL: condition.Operator.LESS,
}


def _comparable(values: pa.Array) -> pa.Array:
    """Return values of a type that Arrow orders."""
    return values.cast(pa.uint8()) if pa.types.is_boolean(values.type) else values


def _without_nan(bounds: pa.Array) -> pa.Array:
    if not is_float(bounds.type):
        return bounds
    return pc.if_else(pc.is_nan(bounds), pa.scalar(None, bounds.type), bounds)


def _fill(bounds: pa.Array, value: pa.Scalar) -> pa.Array:
    """Return bounds that reach a value where there are none."""
    return pc.fill_null(_without_nan(bounds), value)


def _or_unknown(truth: pa.BooleanArray) -> Mask:
    return np.asarray(pc.fill_null(truth, True), dtype=np.bool_)


def _after_all_with(prefix: bytes) -> bytes | None:
    """Return the least bytes after all that start with a prefix; None where there are none."""
    head = prefix.rstrip(b"\xff")
    return head[:-1] + bytes([head[-1] + 1]) if head else None


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


class _ZoneMap(ZoneKind):
    """The kind ZONEMAP."""

    name = "ZONEMAP"
    details_type = "zonemapindexdetails"

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

    def open(self, facts: index_kind.SegmentFacts) -> _Segment:
        """Open a segment."""
        return _Segment(facts)

    def merge(
        self, segments: index_kind.Segments, rows: index_kind.BuildInput, folder: SegmentFolder
    ) -> index_kind.BuiltSegment:
        """Write the zones of segments whose fragments are kept, and those of new rows."""
        kind.ensure_known(self.name, rows.parameters, (ROWS_PER_ZONE,))
        old = [(_Segment(facts), keep) for facts, keep in segments]
        default = old[0][0].rows_per_zone if old else DEFAULT_ROWS_PER_ZONE
        size = kind.count(self.name, rows.parameters, ROWS_PER_ZONE, default)
        writer = ZoneFileWriter(folder, FILE, _schema(rows.dtype), _ZONES_AT_ONCE, old)
        for zone in cut(rows.batches, size):
            bounds, nulls = bounds_of(zone.values), zone.values.null_count
            counts = nulls, bounds.nan_count
            writer.add(zone, (bounds.least, bounds.greatest, *counts, *zone.bounds))
        entry = writer.finish({ROWS_PER_ZONE: str(size)})
        details = _details(size, has_null_bitmap=writer.knows_nulls)
        return index_kind.BuiltSegment(details=details, index_version=0, files=(entry,))


def _details(rows_per_zone: int, *, has_null_bitmap: bool) -> IndexDetails:
    message = index_pb2.ZoneMapIndexDetails(
        rows_per_zone=rows_per_zone, use_seeds=False, has_null_bitmap=has_null_bitmap
    )
    return IndexDetails(type_url=_TYPE_URL, value=message.SerializeToString())


class _Segment(ZoneSegment):
    """A segment that can be searched."""

    file_name = FILE

    @functools.cached_property
    def rows_per_zone(self) -> int:
        """Rows per zone."""
        text = self.file.metadata.get(ROWS_PER_ZONE, "")
        return int(text) if text.isdecimal() else DEFAULT_ROWS_PER_ZONE

    @functools.cached_property
    def _counts(self) -> tuple[Any, Any]:
        names = "null_count", "nan_count"
        self.file.require(*names)
        table = self.file.read(columns=names)
        nulls, nans = (np.asarray(table.column(name), dtype=np.uint64) for name in names)
        return nulls, nans

    @functools.cached_property
    def _bounds(self) -> ZoneBounds:
        names = "min", "max"
        self.file.require(*names)
        least, greatest = (c.combine_chunks() for c in self.file.read(columns=names).columns)
        nulls, nans = self._counts
        return ZoneBounds.of(
            least, greatest, has_number=self.rows.lengths > nulls + nans, has_nan=nans > 0
        )

    def answer(self, leaf: condition.Leaf) -> Answer | None:
        """Search a condition: the zones in which it can be true or false."""
        match leaf:
            case condition.IsNull():
                nulls, _ = self._counts
                return self.rows.answer_is_null(nulls > 0, nulls < self.rows.lengths)
            case condition.Truth():
                return self._compare(condition.Operator.EQUAL, pa.scalar(value=True))
            case condition.Comparison():
                return self._compare(leaf.operator, leaf.value)
            case condition.Membership():
                return self._membership(leaf)
            case condition.TextMatch() if leaf.test is condition.TextTest.STARTS_WITH:
                is_true = self._bounds.may_start_with(leaf.text.encode())
                return self.rows.answer(is_true, self._bounds.has_value)
            case _:
                return None

    def _compare(self, operator: condition.Operator, value: pa.Scalar) -> Answer | None:
        if not self._is_of(value.type):
            return None
        bounds = self._bounds
        is_false = bounds.may_hold(opposite(operator), value)
        return self.rows.answer(bounds.may_hold(operator, value), is_false)

    def _membership(self, leaf: condition.Membership) -> Answer | None:
        if not self._is_of(leaf.values.type):
            return None
        # With a null in the list nothing is known to be outside of it.
        is_false = self._bounds.has_value & (not leaf.has_null)
        return self.rows.answer(self._bounds.may_be_in(leaf.values), is_false)

    def _is_of(self, dtype: pa.DataType) -> bool:
        self.file.require("min")
        return bool(self.file.schema.field("min").type == dtype)

    def entries(self) -> Iterator[pa.RecordBatch]:
        """Stream the zones."""
        self.file.require(*_schema(pa.null()).names)
        yield from self.file.batches(batch_rows=_ZONES_AT_ONCE)

    def statistics(self) -> Mapping[str, Any]:
        """Return the number of zones, and of rows in each."""
        return {"num_zones": self.file.num_rows, "rows_per_zone": self.rows_per_zone}

    def parameters(self) -> index_kind.Parameters:
        """Return the number of rows of a zone."""
        return {ROWS_PER_ZONE: self.rows_per_zone}


ZONE_MAP = _ZoneMap()
