"""BLOOMFILTER indices."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.data.codec.index_file import SegmentFolder
from lancelake.errors import CorruptTableError
from lancelake.expr.condition import Comparison, IsNull, Leaf, Membership, Operator
from lancelake.expr.literals import is_binary, is_float, is_text
from lancelake.format import hashing
from lancelake.format.hashing import U64
from lancelake.format.index_meta import IndexDetails
from lancelake.format.operations import DEFAULT_ITEMS, DEFAULT_PROBABILITY
from lancelake.index import kind
from lancelake.index import kind as index_kind
from lancelake.index.row_sets import Answer
from lancelake.index.scalar.zones import (
    BOUNDS,
    Mask,
    Zone,
    ZoneFileWriter,
    ZoneKind,
    ZoneSegment,
    cut,
)

_INTEGERS = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


def has_hash(dtype: pa.DataType) -> bool:
    """Whether values of a type have a hash that official releases agree on."""
    types = pa.types
    return bool(
        types.is_integer(dtype)
        or is_float(dtype)
        or is_text(dtype)
        or is_binary(dtype)
        or types.is_date(dtype)
        or types.is_time(dtype)
        or types.is_timestamp(dtype)
    )


def hashes_of(values: pa.Array) -> hashing.U64:
    """Return the hashes of values, in order; nulls are skipped."""
    present = _encode(values.drop_null())
    if not len(present):
        return np.array([], dtype=np.uint64)
    if not pa.types.is_large_binary(present.type):
        return hashing.hash_rows(_rows(present))
    offsets = np.frombuffer(present.buffers()[1], dtype=np.int64)
    offsets = offsets[present.offset : present.offset + len(present) + 1]
    data = np.frombuffer(present.buffers()[2] or b"", dtype=np.uint8)
    return hashing.hash_slices(data, offsets)


def _encode(values: pa.Array) -> pa.Array:
    """Return values as the bytes or integers that store them; NaN may be stored in many ways."""
    if is_text(values.type) or is_binary(values.type):
        return values.cast(pa.large_binary())
    return values.view(_INTEGERS[values.type.bit_width])


def _rows(numbers: pa.Array) -> npt.NDArray[np.uint8]:
    """Return the little-endian bytes of each number."""
    values = np.ascontiguousarray(np.asarray(numbers))
    little = values.astype(values.dtype.newbyteorder("<"), copy=False)
    return little.view(np.uint8).reshape(len(values), -1)


FILE = "bloomfilter.lance"
ITEMS, PROBABILITY = "number_of_items", "probability"
_ITEMS_KEY, _PROBABILITY_KEY = "bloomfilter_item", "bloomfilter_probability"
_DETAILS = IndexDetails(type_url="/lance.index.pb.BloomFilterIndexDetails", value=b"")
_FILTER = "bloom_filter_data"
_HAS_NULL = "has_null"
_SCHEMA = pa.schema(
    [
        *BOUNDS,
        pa.field(_HAS_NULL, pa.bool_(), nullable=False),
        pa.field(_FILTER, pa.binary(), nullable=False),
    ]
)
_BYTES_AT_ONCE = 8 << 20
_BYTES_KEPT = 64 << 20
_ROWS_AT_ONCE = 1 << 17
# A larger one is believed if the file has one.
_LARGE_FILTER = 4 << 20
# Values looked up at once in all filters of a batch.
_HASHES_AT_ONCE = 512

Filters = npt.NDArray[np.uint32]


class _BloomFilter(ZoneKind):
    """The kind BLOOMFILTER."""

    name = "BLOOMFILTER"
    details_type = "bloomfilterindexdetails"

    def accepts(self, dtype: pa.DataType) -> bool:
        """Whether columns of a type can be indexed."""
        return has_hash(dtype)

    def open(self, facts: index_kind.SegmentFacts) -> _Segment:
        """Open a segment."""
        return _Segment(facts)

    def merge(
        self, segments: index_kind.Segments, rows: index_kind.BuildInput, folder: SegmentFolder
    ) -> index_kind.BuiltSegment:
        """Write the filters of segments whose fragments are kept, and those of new rows."""
        kind.ensure_known(self.name, rows.parameters, (ITEMS, PROBABILITY))
        old = [(_Segment(facts), keep) for facts, keep in segments]
        items, rate = old[0][0].setup if old else (DEFAULT_ITEMS, DEFAULT_PROBABILITY)
        items = kind.count(self.name, rows.parameters, ITEMS, items)
        rate = kind.probability(self.name, rows.parameters, PROBABILITY, rate)
        size = hashing.size_bytes(items, rate)
        writer = ZoneFileWriter(folder, FILE, _SCHEMA, max(1, _BYTES_AT_ONCE // size), old)
        for zone, hashes in _with_hashes(cut(rows.batches, items), max(1, _ROWS_AT_ONCE // items)):
            blocks = hashing.empty(size)
            hashing.insert(blocks, hashes)
            has_null = zone.values.null_count > 0
            writer.add(zone, (*zone.bounds, has_null, hashing.encode(blocks)))
        entry = writer.finish({_ITEMS_KEY: str(items), _PROBABILITY_KEY: repr(rate)})
        return index_kind.BuiltSegment(details=_DETAILS, index_version=0, files=(entry,))


def _with_hashes(zones: Iterable[Zone], at_once: int) -> Iterator[tuple[Zone, U64]]:
    """Yield zones with the hashes of their values; those of many zones are computed together."""
    remaining = iter(zones)
    while some := list(itertools.islice(remaining, at_once)):
        hashes = hashes_of(pa.concat_arrays([zone.values for zone in some]))
        ends = np.cumsum([len(zone.values) - zone.values.null_count for zone in some])
        yield from zip(some, np.split(hashes, ends[:-1]), strict=True)


class _Segment(ZoneSegment):
    """A segment that can be searched."""

    file_name = FILE

    def __init__(self, facts: index_kind.SegmentFacts) -> None:
        super().__init__(facts)
        self._cached: list[Filters] | None = None

    @functools.cached_property
    def setup(self) -> tuple[int, float]:
        """Rows per filter, and the false-positive probability."""
        metadata = self.file.metadata
        try:
            items = int(metadata.get(_ITEMS_KEY, DEFAULT_ITEMS))
            rate = float(metadata.get(_PROBABILITY_KEY, DEFAULT_PROBABILITY))
            size = hashing.size_bytes(items, rate)
        except (ValueError, ArithmeticError) as error:
            raise self._corrupt(f"has metadata that is not a number: {error}") from error
        # New filters are as large as the metadata says.
        if size > max(_LARGE_FILTER, self.file.read(0, 1).nbytes):
            raise self._corrupt(f"claims {items} rows in a filter")
        return items, rate

    def answer(self, leaf: Leaf) -> Answer | None:
        """Search an equality: the zones whose filter may have a value."""
        match leaf:
            case IsNull():
                self.file.require(_HAS_NULL)
                has_null = np.asarray(self.file.read(columns=[_HAS_NULL]).column(0))
                return self.rows.answer_is_null(has_null, np.ones(len(has_null), dtype=np.bool_))
            case Comparison() if leaf.operator is Operator.EQUAL:
                return self._search(pa.array([leaf.value], leaf.value.type), may_be_false=True)
            case Membership():
                # With a null in the list nothing is known to be outside of it.
                return self._search(leaf.values, may_be_false=not leaf.has_null)
            case _:
                return None

    def _search(self, values: pa.Array, *, may_be_false: bool) -> Answer | None:
        wanted = _alike(values) if values.type == self._facts.dtype else None
        if wanted is None or not has_hash(values.type):
            return None
        hashes = hashes_of(wanted)
        parts = [_may_have(filters, hashes) for filters in self._filters()]
        is_true = np.concatenate([np.zeros(0, dtype=np.bool_), *parts])
        is_false = np.full(len(is_true), may_be_false, dtype=np.bool_)
        return self.rows.answer(is_true, is_false)

    def _filters(self) -> Iterator[Filters]:
        """Yield the filters of consecutive zones; small ones are cached."""
        if self._cached is not None:
            yield from self._cached
            return
        self.file.require(_FILTER)
        small: list[Filters] = []
        size = 0
        for batch in self._batches(columns=[_FILTER]):
            filters = self._decode(batch.column(0))
            size += filters.nbytes
            if size <= _BYTES_KEPT:
                small.append(filters)
            yield filters
        if size <= _BYTES_KEPT:
            self._cached = small

    def _decode(self, column: pa.Array) -> Filters:
        """Return filters of one size as an array of zones, blocks and words."""
        lengths = pc.unique(pc.binary_length(column)).to_pylist()
        size = lengths[0] if len(lengths) == 1 else None
        if not size or size % hashing.BLOCK_BYTES or column.null_count:
            raise self._corrupt(f"has filters of {lengths} bytes")
        data = column.buffers()[2]
        start = np.frombuffer(column.buffers()[1], dtype=np.int32)[column.offset]
        whole = np.frombuffer(data, dtype="<u4", count=len(column) * size // 4, offset=start)
        return whole.reshape(len(column), -1, hashing.WORDS)

    def _batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        rows = max(1, _BYTES_AT_ONCE // hashing.size_bytes(*self.setup))
        return self.file.batches(batch_rows=rows, columns=columns)

    def entries(self) -> Iterator[pa.RecordBatch]:
        """Stream the zones."""
        self.file.require(*_SCHEMA.names)
        yield from self._batches()

    def statistics(self) -> Mapping[str, Any]:
        """Return the number of zones, and how their filters were set up."""
        items, rate = self.setup
        return {
            "type": "BloomFilter",
            "num_blocks": self.file.num_rows,
            ITEMS: items,
            PROBABILITY: rate,
        }

    def parameters(self) -> index_kind.Parameters:
        """Return the number of rows of a zone, and how often a filter may be wrong."""
        items, rate = self.setup
        return {ITEMS: items, PROBABILITY: rate}

    def _corrupt(self, problem: str) -> CorruptTableError:
        path = self._facts.folder.file(FILE).path
        return CorruptTableError(f"index file {path} {problem}", path=path)


def _alike(values: pa.Array) -> pa.Array | None:
    """Return all values that a condition takes for equal; None where those are too many."""
    if not is_float(values.type):
        return values
    if pc.any(pc.is_nan(values)).as_py():
        return None  # NaN has many bit patterns
    is_zero = pc.equal(values, pa.scalar(0.0, values.type))
    zeros = pa.array([0.0, -0.0] if pc.any(is_zero).as_py() else [], values.type)
    return pa.concat_arrays([values, zeros])


def _may_have(filters: Filters, hashes: npt.NDArray[np.uint64]) -> Mask:
    """Return which filters may have one of the values."""
    may_have = np.zeros(len(filters), dtype=np.bool_)
    numbers = hashing.block_numbers(hashes, filters.shape[1])
    masks = hashing.masks(hashes)
    for start in range(0, len(hashes), _HASHES_AT_ONCE):
        stop = start + _HASHES_AT_ONCE
        wanted = masks[None, start:stop]
        is_set = (filters[:, numbers[start:stop]] & wanted) == wanted
        may_have |= is_set.all(axis=2).any(axis=1)
    return may_have


BLOOM_FILTER = _BloomFilter()
