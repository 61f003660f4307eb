"""LABEL_LIST index: a set of rows for each distinct element of a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lancelake.data.codec.index_file import SegmentFolder
from lancelake.expr.condition import IsNull, Leaf, ListMatch, ListTest
from lancelake.format.index_meta import IndexDetails
from lancelake.index.answer import Answer
from lancelake.index.kind import (
    ROW_ID,
    VALUE,
    BuildInput,
    BuiltSegment,
    IdKind,
    Order,
    Parameters,
    RowMap,
    SegmentFacts,
)
from lancelake.index.order import has_order
from lancelake.index.row_ids import EMPTY, RowIds, union
from lancelake.index.scalar.bitmap import expanded, refuse_parameters
from lancelake.index.scalar.key_table import KeyTable
from lancelake.index.scalar.keyed_sets import (
    KeyedSet,
    grouped,
    mapped,
    mapped_ids,
    write_sets,
)
from lancelake.index.scalar.stored_sets import KeyedStoredSet, merged, only, stored
from lancelake.index.sort import row_schema, value_sorted

_DETAILS = IndexDetails(type_url="/lance.table.LabelListIndexDetails", value=b"")
_VERSION = 1
"""From this version on, segments store the rows whose list is null."""


class LabelListSegment:
    """A LABEL_LIST that can be searched."""

    def __init__(self, facts: SegmentFacts) -> None:
        self._element = element_type(facts.dtype)
        self._table = KeyTable(facts, self._element)

    def answer(self, leaf: Leaf) -> Answer | None:
        """Search tests of elements and of null lists."""
        null_lists = self._table.null_lists()
        match leaf:
            case ListMatch():
                found = self._matching(leaf)
                if null_lists is None:
                    return Answer.true_only(found)
                return Answer.exact(found, null_lists)
            case IsNull():
                return None if null_lists is None else Answer.exact(null_lists)
            case _:
                return None

    def entries(self) -> Iterator[pa.RecordBatch]:
        """Stream all elements and row ids in the order of the elements."""
        yield from expanded(self.sets(), self._element)

    def sets(self) -> Iterator[KeyedSet]:
        """Stream the elements with their rows in key order."""
        return self._table.sets()

    def stored_sets(self) -> Iterator[KeyedStoredSet]:
        """Stream the elements with their rows as the file stores them, in key order."""
        return self._table.stored_sets()

    def null_lists(self) -> RowIds | None:
        """Return the rows whose list is null; None if the segment does not store them."""
        return self._table.null_lists()

    def statistics(self) -> Mapping[str, Any]:
        """Return the number of sets."""
        return {"num_bitmaps": len(self._table.column.order)}

    def parameters(self) -> Parameters:
        """Return no parameter: the kind has none."""
        return {}

    def prewarm(self) -> None:
        """Read the keys, and the rows of each."""
        self._table.rows(range(len(self._table.column.order)))

    def _matching(self, leaf: ListMatch) -> RowIds:
        values = leaf.values
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        rows = self._table.column.rows_of(values.unique())
        known = [row for row in rows if row is not None]
        if leaf.test is ListTest.ANY:
            return self._table.rows(known)
        if len(known) < len(rows):
            return EMPTY
        return reduce(lambda a, b: a & b, (self._table.rows([row]) for row in known))


class LabelList:
    """A set of rows for each element of a list: for lists of labels."""

    name = "LABEL_LIST"
    details_type = "labellistindexdetails"
    max_version = _VERSION
    order = Order.ROW

    def accepts(self, dtype: pa.DataType) -> bool:
        """Whether a type is that of lists, whose elements have an order."""
        is_list = pa.types.is_list(dtype) or pa.types.is_large_list(dtype)
        return bool(is_list) and has_order(element_type(dtype))

    def stored_ids(self, index_version: int, *, has_stable_row_ids: bool) -> IdKind:
        """Return whether a segment stores addresses or stable row ids."""
        return IdKind.STABLE_ID if has_stable_row_ids else IdKind.ADDRESS

    def build(self, rows: BuildInput, folder: SegmentFolder) -> BuiltSegment:
        """Write a segment."""
        refuse_parameters(self.name, rows)
        lists = _Lists(rows)
        sets = stored(grouped(lists.sorted_elements()))
        return _built(folder, rows.dtype, sets, lambda: lists.nulls)

    def open(self, facts: SegmentFacts) -> LabelListSegment:
        """Open a segment."""
        return LabelListSegment(facts)

    def merge(
        self,
        segments: Sequence[tuple[SegmentFacts, RowIds | None]],
        rows: BuildInput,
        folder: SegmentFolder,
    ) -> BuiltSegment:
        """Merge several segments and new rows into one: the union for each element."""
        refuse_parameters(self.name, rows)
        opened = [(LabelListSegment(facts), ids) for facts, ids in segments]
        lists = _Lists(rows)
        old = [only(segment.stored_sets(), ids) for segment, ids in opened]
        sets = merged([*old, stored(grouped(lists.sorted_elements()))])
        nulls = [_restricted(segment.null_lists(), ids) for segment, ids in opened]
        known = [found for found in nulls if found is not None]
        if len(known) < len(nulls):
            return _built(folder, rows.dtype, sets, None)
        return _built(folder, rows.dtype, sets, lambda: union([*known, lists.nulls]))

    def remap(self, facts: SegmentFacts, row_map: RowMap, folder: SegmentFolder) -> BuiltSegment:
        """Write a segment with other row ids; elements without rows are omitted."""
        segment = LabelListSegment(facts)
        sets, nulls = stored(mapped(segment.sets(), row_map)), segment.null_lists()
        if nulls is None:
            return _built(folder, facts.dtype, sets, None)
        return _built(folder, facts.dtype, sets, lambda: mapped_ids(nulls, row_map))


class _Lists:
    """The elements of lists to be indexed, and the rows whose list is null."""

    def __init__(self, rows: BuildInput) -> None:
        self._batches = rows.batches
        self._element = element_type(rows.dtype)
        self.nulls = EMPTY
        """Complete once the elements are read."""

    def sorted_elements(self) -> Iterator[pa.RecordBatch]:
        """Yield elements with the ids of their rows, in value order."""
        yield from value_sorted(self._element, self._elements())

    def _elements(self) -> Iterator[pa.RecordBatch]:
        schema = row_schema(self._element)
        for batch in self._batches:
            lists, ids = batch.column(VALUE), batch.column(ROW_ID).to_numpy()
            if lists.null_count:
                is_null = pc.is_null(lists).to_numpy(zero_copy_only=False)
                self.nulls |= RowIds.of(ids[is_null])
            elements = pc.list_flatten(lists)
            if pa.types.is_dictionary(elements.type):
                elements = elements.dictionary_decode()
            parents = pc.list_parent_indices(lists).to_numpy()
            yield pa.RecordBatch.from_arrays([elements, pa.array(ids[parents])], schema=schema)


def element_type(dtype: pa.DataType) -> pa.DataType:
    """Return the type of the elements of a list, without the dictionary that they may have."""
    found = dtype.value_type
    return found.value_type if pa.types.is_dictionary(found) else found


def _restricted(null_lists: RowIds | None, ids: RowIds | None) -> RowIds | None:
    return null_lists if null_lists is None or ids is None else null_lists & ids


def _built(
    folder: SegmentFolder,
    dtype: pa.DataType,
    sets: Iterable[KeyedStoredSet],
    null_lists: Callable[[], RowIds] | None,
) -> BuiltSegment:
    """Write the sets; without the null lists this is a segment of the version before."""
    file = write_sets(folder, dtype.value_type, sets, null_lists=null_lists)
    version = _VERSION if null_lists is not None else _VERSION - 1
    return BuiltSegment(details=_DETAILS, index_version=version, files=(file,))


LABEL_LIST = LabelList()
