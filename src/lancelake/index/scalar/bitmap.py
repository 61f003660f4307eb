"""BITMAP index: a set of rows for each distinct value."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.data.codec.index_file import SegmentFolder
from lancelake.expr.condition import Column, Comparison, IsNull, Leaf, Membership, TextMatch, Truth
from lancelake.expr.evaluate import evaluate
from lancelake.expr.literals import is_comparable
from lancelake.format.index_meta import IndexDetails, IndexFile
from lancelake.index import kind
from lancelake.index.order import has_order
from lancelake.index.row_sets import EMPTY, Answer, RowIds, union
from lancelake.index.scalar import keyed_sets

_SETS_AT_ONCE = 4096
_DETAILS = IndexDetails(type_url="/lance.table.BitmapIndexDetails", value=b"")


class BitmapSegment(keyed_sets.KeyedSegment):
    """A BITMAP that can be searched: conditions are evaluated on its keys."""

    def __init__(self, facts: kind.SegmentFacts) -> None:
        super().__init__(facts, facts.dtype)

    def answer(self, leaf: Leaf) -> Answer | None:
        """Search any condition on the value alone."""
        match leaf:
            case IsNull():
                return Answer.exact(self._nulls())
            case Truth() | Comparison() | Membership() | TextMatch():
                return self._evaluate(leaf) if is_comparable(self._dtype) else None
            case _:
                return None

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

    def _nulls(self) -> RowIds:
        row = self._table.column.null_row
        return EMPTY if row is None else self._table.rows([row])

    def _evaluate(self, leaf: Truth | Comparison | Membership | TextMatch) -> Answer:
        column = self._table.column
        on_keys = replace(leaf, column=Column(path=(kind.VALUE,), dtype=leaf.column.dtype))
        keys = pa.RecordBatch.from_arrays([column.values], names=[kind.VALUE])
        truth = evaluate(on_keys, keys)
        is_true = _where(truth, True)
        if isinstance(leaf, Membership) and leaf.has_null:
            return Answer.never_false(self._table.rows(is_true))
        is_false = _where(truth, False)
        # Only the null key has neither.
        if len(is_true) <= len(is_false):
            return Answer.exact(self._table.rows(is_true), self._nulls())
        return ~Answer.exact(self._table.rows(is_false), self._nulls())


class Bitmap(kind.IndexKind):
    """A set of rows for each value: for columns with few distinct ones."""

    name = "BITMAP"
    details_type = "bitmapindexdetails"
    order = kind.Order.VALUE

    def accepts(self, dtype: pa.DataType) -> bool:
        """Whether values of a type have an order."""
        return has_order(dtype)

    def wrote(self, names: Collection[str], dtype: pa.DataType) -> bool:
        """Whether there is a file of sets, which is not one of the elements of lists."""
        return keyed_sets.FILE in names and not keyed_sets.is_list(dtype)

    def open(self, facts: kind.SegmentFacts) -> BitmapSegment:
        """Open a segment."""
        return BitmapSegment(facts)

    def merge(
        self, segments: kind.Segments, rows: kind.BuildInput, folder: SegmentFolder
    ) -> kind.BuiltSegment:
        """Merge several segments and new rows into one: the union for each key."""
        kind.ensure_known(self.name, rows.parameters, ())
        old = [
            keyed_sets.restrict(BitmapSegment(facts).stored_sets(), ids) for facts, ids in segments
        ]
        sets = keyed_sets.merge_sets([*old, keyed_sets.encode_sets(keyed_sets.group(rows.batches))])
        return _describe(keyed_sets.write_sets(folder, rows.dtype, sets))

    def remap(
        self, facts: kind.SegmentFacts, row_map: kind.RowMap, folder: SegmentFolder
    ) -> kind.BuiltSegment:
        """Write a segment with other row ids; keys without rows are omitted."""
        sets = keyed_sets.map_sets(BitmapSegment(facts).sets(), row_map)
        return _describe(keyed_sets.write_sets(folder, facts.dtype, keyed_sets.encode_sets(sets)))


def _where(truth: pa.BooleanArray, wanted: bool) -> list[int]:
    """Return the positions with this value."""
    matches = truth if wanted else pc.invert(truth)
    return np.flatnonzero(pc.fill_null(matches, False).to_numpy(zero_copy_only=False)).tolist()


def _describe(file: IndexFile) -> kind.BuiltSegment:
    return kind.BuiltSegment(details=_DETAILS, index_version=0, files=(file,))


BITMAP = Bitmap()
