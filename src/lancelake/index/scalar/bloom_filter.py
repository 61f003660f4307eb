"""BLOOMFILTER index: a bloom filter over the values of each zone."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from lancelake.data.codec.index_file import IndexFileReader, SegmentFolder
from lancelake.errors import CorruptTableError
from lancelake.expr.condition import Comparison, IsNull, Leaf, Membership, Operator
from lancelake.expr.literals import is_float
from lancelake.format import split_block
from lancelake.format.index_meta import IndexDetails
from lancelake.format.key_filter import DEFAULT_ITEMS, DEFAULT_PROBABILITY
from lancelake.format.xxh64 import U64
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
from lancelake.index.scalar.value_hashes import has_hash, hashes_of
from lancelake.index.scalar.zones import BOUNDS, Mask, Zone, ZoneFileWriter, ZoneRows, cut

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


class _BloomFilter:
    """The kind BLOOMFILTER."""

    name = "BLOOMFILTER"
    details_type = "bloomfilterindexdetails"
    max_version = 0
    order = Order.ROW

    def accepts(self, dtype: pa.DataType) -> bool:
        """Whether columns of a type can be indexed."""
        return has_hash(dtype)

    def stored_ids(self, index_version: int, *, has_stable_row_ids: bool) -> IdKind:
        """Return the row references of a segment, which are always addresses."""
        return IdKind.ADDRESS

    def build(self, rows: BuildInput, folder: SegmentFolder) -> BuiltSegment:
        """Write the filters of rows, which come in their order."""
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
        """Write the filters of segments whose fragments are kept, and those of new rows."""
        parameters.ensure_known(self.name, rows.parameters, (ITEMS, PROBABILITY))
        olds = [(_Segment(facts), keep) for facts, keep in segments]
        items, rate = olds[0][0].setup if olds else (DEFAULT_ITEMS, DEFAULT_PROBABILITY)
        items = parameters.count(self.name, rows.parameters, ITEMS, items)
        rate = parameters.probability(self.name, rows.parameters, PROBABILITY, rate)
        size = split_block.size_bytes(items, rate)
        writer = ZoneFileWriter(folder, FILE, _SCHEMA, max(1, _BYTES_AT_ONCE // size))
        for old, keep in olds:
            writer.add_segment(old.entries(), old.rows, keep)
        for zone, hashes in _hashed(cut(rows.batches, items), max(1, _ROWS_AT_ONCE // items)):
            blocks = split_block.empty(size)
            split_block.insert(blocks, hashes)
            has_null = zone.values.null_count > 0
            writer.add(zone, (*zone.bounds, has_null, split_block.encode(blocks)))
        entry = writer.finish({_ITEMS_KEY: str(items), _PROBABILITY_KEY: repr(rate)})
        return BuiltSegment(details=_DETAILS, index_version=0, files=(entry,))

    def remap(
        self, facts: SegmentFacts, row_map: RowMap, folder: SegmentFolder
    ) -> BuiltSegment | None:
        """Return None: rows that move leave their zones."""
        return None


def _hashed(zones: Iterable[Zone], at_once: int) -> Iterator[tuple[Zone, U64]]:
    """Yield zones with the hashes of their values; those of many zones are computed together."""
    remaining = iter(zones)
    while some := list(itertools.islice(remaining, at_once)):
        hashes = hashes_of(pa.concat_arrays([zone.values for zone in some]))
        ends = np.cumsum([len(zone.values) - zone.values.null_count for zone in some])
        yield from zip(some, np.split(hashes, ends[:-1]), strict=True)


class _Segment:
    """A segment that can be searched."""

    def __init__(self, facts: SegmentFacts) -> None:
        self._facts = facts
        self._kept: list[Filters] | None = None

    @functools.cached_property
    def rows(self) -> ZoneRows:
        """The rows of the zones."""
        return ZoneRows.read(self._file, self._facts, FILE)

    @functools.cached_property
    def setup(self) -> tuple[int, float]:
        """Rows per filter, and the false-positive probability."""
        found = self._file.metadata
        try:
            items = int(found.get(_ITEMS_KEY, DEFAULT_ITEMS))
            rate = float(found.get(_PROBABILITY_KEY, DEFAULT_PROBABILITY))
            size = split_block.size_bytes(items, rate)
        except (ValueError, ArithmeticError) as error:
            raise self._corrupt(f"has metadata that is not a number: {error}") from error
        # New filters are as large as the metadata says.
        if size > max(_LARGE_FILTER, self._file.read(0, 1).nbytes):
            raise self._corrupt(f"claims {items} rows in a filter")
        return items, rate

    @functools.cached_property
    def _file(self) -> IndexFileReader:
        return self._facts.folder.open(FILE)

    def answer(self, leaf: Leaf) -> Answer | None:
        """Search an equality: the zones whose filter may have a value."""
        match leaf:
            case IsNull():
                self._file.require(_HAS_NULL)
                has_null = np.asarray(self._file.read(columns=[_HAS_NULL]).column(0))
                return self.rows.answer_is_null(has_null, np.ones(len(has_null), dtype=np.bool_))
            case Comparison() if leaf.operator is Operator.EQUAL:
                return self._found(pa.array([leaf.value], leaf.value.type), may_be_false=True)
            case Membership():
                # With a null in the list nothing is known to be outside of it.
                return self._found(leaf.values, may_be_false=not leaf.has_null)
            case _:
                return None

    def _found(self, values: pa.Array, *, may_be_false: bool) -> Answer | None:
        wanted = _alike(values) if values.type == self._facts.dtype else None
        if wanted is None or not has_hash(values.type):
            return None
        hashes = hashes_of(wanted)
        parts = [_may_have(filters, hashes) for filters in self._filters()]
        found = np.concatenate([np.zeros(0, dtype=np.bool_), *parts])
        is_false = np.full(len(found), may_be_false, dtype=np.bool_)
        return self.rows.answer(found, is_false)

    def _filters(self) -> Iterator[Filters]:
        """Yield the filters of consecutive zones; small ones are cached."""
        if self._kept is not None:
            yield from self._kept
            return
        self._file.require(_FILTER)
        kept: list[Filters] = []
        size = 0
        for batch in self._batches(columns=[_FILTER]):
            filters = self._decoded(batch.column(0))
            size += filters.nbytes
            if size <= _BYTES_KEPT:
                kept.append(filters)
            yield filters
        if size <= _BYTES_KEPT:
            self._kept = kept

    def _decoded(self, column: pa.Array) -> Filters:
        """Return filters of one size as an array of zones, blocks and words."""
        lengths = pc.unique(pc.binary_length(column)).to_pylist()
        size = lengths[0] if len(lengths) == 1 else None
        if not size or size % split_block.BLOCK_BYTES or column.null_count:
            raise self._corrupt(f"has filters of {lengths} bytes")
        data = column.buffers()[2]
        start = np.frombuffer(column.buffers()[1], dtype=np.int32)[column.offset]
        whole = np.frombuffer(data, dtype="<u4", count=len(column) * size // 4, offset=start)
        return whole.reshape(len(column), -1, split_block.WORDS)

    def _batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        rows = max(1, _BYTES_AT_ONCE // split_block.size_bytes(*self.setup))
        return self._file.batches(batch_rows=rows, columns=columns)

    def entries(self) -> Iterator[pa.RecordBatch]:
        """Stream the zones."""
        self._file.require(*_SCHEMA.names)
        yield from self._batches()

    def fragments(self) -> BitMap:
        """Return the fragments that have a zone."""
        return self.rows.named_fragments

    def statistics(self) -> Mapping[str, Any]:
        """Return the number of zones, and how their filters were set up."""
        items, rate = self.setup
        return {
            "type": "BloomFilter",
            "num_blocks": self._file.num_rows,
            ITEMS: items,
            PROBABILITY: rate,
        }

    def parameters(self) -> Parameters:
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
    found = np.zeros(len(filters), dtype=np.bool_)
    numbers = split_block.block_numbers(hashes, filters.shape[1])
    masks = split_block.masks(hashes)
    for start in range(0, len(hashes), _HASHES_AT_ONCE):
        stop = start + _HASHES_AT_ONCE
        wanted = masks[None, start:stop]
        is_set = (filters[:, numbers[start:stop]] & wanted) == wanted
        found |= is_set.all(axis=2).any(axis=1)
    return found


BLOOM_FILTER: IndexKind = _BloomFilter()
