"""BITMAP index: a set of rows for each distinct value."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.data.codec.index_file import SegmentFolder
from lancelake.expr.condition import Column, Comparison, IsNull, Leaf, Membership, TextMatch, Truth
from lancelake.expr.evaluate import evaluate
from lancelake.expr.literals import is_comparable
from lancelake.format.index_meta import IndexDetails, IndexFile
from lancelake.index.answer import Answer
from lancelake.index.kind import (
    VALUE,
    BuildInput,
    BuiltSegment,
    IdKind,
    Order,
    Parameters,
    RowMap,
    SegmentFacts,
)
from lancelake.index.order import has_order, key_array, values_of
from lancelake.index.row_ids import EMPTY, RowIds, union
from lancelake.index.scalar.key_table import KeyTable
from lancelake.index.scalar.keyed_sets import (
    KeyedSet,
    grouped,
    mapped,
    write_sets,
)
from lancelake.index.scalar.parameters import ensure_known
from lancelake.index.scalar.stored_sets import KeyedStoredSet, merged, only, stored
from lancelake.index.sort import row_schema

_SETS_AT_ONCE = 4096
_DETAILS = IndexDetails(type_url="/lance.table.BitmapIndexDetails", value=b"")


class BitmapSegment:
    """A BITMAP that can be searched: conditions are evaluated on its keys."""

    def __init__(self, facts: SegmentFacts) -> None:
        self._table = KeyTable(facts, facts.dtype)
        self._dtype = facts.dtype

    def answer(self, leaf: Leaf) -> Answer | None:
        """Search any condition on the value alone."""
        match leaf:
            case IsNull():
                return Answer.exact(self._nulls())
            case Truth() | Comparison() | Membership() | TextMatch():
                return self._evaluated(leaf) if is_comparable(self._dtype) else None
            case _:
                return None

    def entries(self) -> Iterator[pa.RecordBatch]:
        """Stream all values and row ids in value order."""
        yield from expanded(self.sets(), self._dtype)

    def sets(self) -> Iterator[KeyedSet]:
        """Stream the keys with their rows in key order."""
        return self._table.sets()

    def stored_sets(self) -> Iterator[KeyedStoredSet]:
        """Stream the keys with their rows as the file stores them, in key order."""
        return self._table.stored_sets()

    def early_rows(self) -> RowIds | None:
        """Return all rows of a segment that may have lost nulls; None for others."""
        return self._table.early_rows()

    def has_rows_twice(self) -> bool:
        """Whether a row is in the sets of two values. Reads all sets."""
        seen, count = EMPTY, 0
        sets = (ids for _, ids in self.sets())
        while some := list(itertools.islice(sets, _SETS_AT_ONCE)):
            seen = union([seen, *some])
            count += sum(map(len, some))
        return len(seen) < count

    def statistics(self) -> Mapping[str, Any]:
        """Return the number of sets."""
        return {"num_bitmaps": len(self._table.column.order)}

    def parameters(self) -> Parameters:
        """Return no parameter: the kind has none."""
        return {}

    def prewarm(self) -> None:
        """Read the keys, and the rows of each."""
        self._table.rows(range(len(self._table.column.order)))

    def _nulls(self) -> RowIds:
        row = self._table.column.null_row
        return EMPTY if row is None else self._table.rows([row])

    def _evaluated(self, leaf: Truth | Comparison | Membership | TextMatch) -> Answer:
        column = self._table.column
        on_keys = replace(leaf, column=Column(path=(VALUE,), dtype=leaf.column.dtype))
        keys = pa.RecordBatch.from_arrays([column.values], names=[VALUE])
        truth = evaluate(on_keys, keys)
        is_true = _where(truth, True)
        if isinstance(leaf, Membership) and leaf.has_null:
            return Answer.never_false(self._table.rows(is_true))
        is_false = _where(truth, False)
        # Only the null key has neither.
        if len(is_true) <= len(is_false):
            return Answer.exact(self._table.rows(is_true), self._nulls())
        return ~Answer.exact(self._table.rows(is_false), self._nulls())


class Bitmap:
    """A set of rows for each value: for columns with few distinct ones."""

    name = "BITMAP"
    details_type = "bitmapindexdetails"
    max_version = 0
    order = Order.VALUE

    def accepts(self, dtype: pa.DataType) -> bool:
        """Whether values of a type have an order."""
        return has_order(dtype)

    def stored_ids(self, index_version: int, *, has_stable_row_ids: bool) -> IdKind:
        """Return whether a segment stores addresses or stable row ids."""
        return IdKind.STABLE_ID if has_stable_row_ids else IdKind.ADDRESS

    def build(self, rows: BuildInput, folder: SegmentFolder) -> BuiltSegment:
        """Write a segment."""
        refuse_parameters(self.name, rows)
        return _built(write_sets(folder, rows.dtype, stored(grouped(rows.batches))))

    def open(self, facts: SegmentFacts) -> BitmapSegment:
        """Open a segment."""
        return BitmapSegment(facts)

    def merge(
        self,
        segments: Sequence[tuple[SegmentFacts, RowIds | None]],
        rows: BuildInput,
        folder: SegmentFolder,
    ) -> BuiltSegment:
        """Merge several segments and new rows into one: the union for each key."""
        refuse_parameters(self.name, rows)
        old = [only(BitmapSegment(facts).stored_sets(), ids) for facts, ids in segments]
        sets = merged([*old, stored(grouped(rows.batches))])
        return _built(write_sets(folder, rows.dtype, sets))

    def remap(self, facts: SegmentFacts, row_map: RowMap, folder: SegmentFolder) -> BuiltSegment:
        """Write a segment with other row ids; keys without rows are omitted."""
        sets = mapped(BitmapSegment(facts).sets(), row_map)
        return _built(write_sets(folder, facts.dtype, stored(sets)))


def refuse_parameters(name: str, rows: BuildInput) -> None:
    """Raise for parameters of a kind that has none."""
    ensure_known(name, rows.parameters, ())


def expanded(sets: Iterator[KeyedSet], dtype: pa.DataType) -> Iterator[pa.RecordBatch]:
    """Yield the rows of each key as a batch."""
    schema = row_schema(dtype)
    for key, ids in sets:
        rows = ids.to_array()
        value = values_of(key_array([key], dtype), dtype)
        values = value.take(pa.array(np.zeros(len(rows), dtype=np.int64)))
        yield pa.RecordBatch.from_arrays([values, pa.array(rows)], schema=schema)


def _where(truth: pa.BooleanArray, wanted: bool) -> list[int]:
    """Return the positions with this value."""
    found = truth if wanted else pc.invert(truth)
    return np.flatnonzero(pc.fill_null(found, False).to_numpy(zero_copy_only=False)).tolist()


def _built(file: IndexFile) -> BuiltSegment:
    return BuiltSegment(details=_DETAILS, index_version=0, files=(file,))


BITMAP = Bitmap()
