"""LABEL_LIST index: a set of rows for each distinct element of a list."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from lancelake.data.codec.index_file import SegmentFolder
from lancelake.expr.condition import IsNull, Leaf, ListMatch, ListTest
from lancelake.format.index_meta import IndexDetails
from lancelake.index import kind, order, row_sets, sort
from lancelake.index.scalar import keyed_sets

_DETAILS = IndexDetails(type_url="/lance.table.LabelListIndexDetails", value=b"")
_VERSION = 1
"""From this version on, segments store the rows whose list is null."""


class LabelListSegment(keyed_sets.KeyedSegment):
    """A LABEL_LIST that can be searched."""

    def __init__(self, facts: kind.SegmentFacts) -> None:
        super().__init__(facts, element_type(facts.dtype))

    def answer(self, leaf: Leaf) -> row_sets.Answer | None:
        """Search tests of elements and of null lists."""
        null_lists = self._table.null_lists()
        match leaf:
            case ListMatch():
                rows = self._matching(leaf)
                if null_lists is None:
                    return row_sets.Answer.true_only(rows)
                return row_sets.Answer.exact(rows, null_lists)
            case IsNull():
                return None if null_lists is None else row_sets.Answer.exact(null_lists)
            case _:
                return None

    def null_lists(self) -> row_sets.RowIds | None:
        """Return the rows whose list is null; None if the segment does not store them."""
        return self._table.null_lists()

    def has_rows_twice(self) -> bool:
        """Return True: a row has several labels, of which old ones do not differ from others."""
        return True

    def _matching(self, leaf: ListMatch) -> row_sets.RowIds:
        values = leaf.values
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        rows = self._table.column.rows_of(values.unique())
        stored = [row for row in rows if row is not None]
        if leaf.test is ListTest.ANY:
            return self._table.rows(stored)
        if len(stored) < len(rows):
            return row_sets.EMPTY
        return reduce(lambda a, b: a & b, (self._table.rows([row]) for row in stored))


class LabelList(kind.IndexKind):
    """A set of rows for each element of a list: for lists of labels."""

    name = "LABEL_LIST"
    details_type = "labellistindexdetails"
    max_version = _VERSION

    def accepts(self, dtype: pa.DataType) -> bool:
        """Whether a type is that of lists, whose elements have an order."""
        return keyed_sets.is_list(dtype) and order.has_order(element_type(dtype))

    def wrote(self, names: Collection[str], dtype: pa.DataType) -> bool:
        """Whether there is a file of sets of the elements of lists."""
        return keyed_sets.FILE in names and keyed_sets.is_list(dtype)

    def open(self, facts: kind.SegmentFacts) -> LabelListSegment:
        """Open a segment."""
        return LabelListSegment(facts)

    def merge(
        self, segments: kind.Segments, rows: kind.BuildInput, folder: SegmentFolder
    ) -> kind.BuiltSegment:
        """Merge several segments and new rows into one: the union for each element."""
        kind.ensure_known(self.name, rows.parameters, ())
        opened = [(LabelListSegment(facts), ids) for facts, ids in segments]
        lists = _Lists(rows)
        old = [keyed_sets.restrict(segment.stored_sets(), ids) for segment, ids in opened]
        sets = keyed_sets.merge_sets(
            [*old, keyed_sets.encode_sets(keyed_sets.group(lists.sorted_elements()))]
        )
        stored = [(segment.null_lists(), ids) for segment, ids in opened]
        nulls = [all_ if ids is None else all_ & ids for all_, ids in stored if all_ is not None]
        if len(nulls) < len(stored):
            return _write(folder, rows.dtype, sets, None)
        return _write(folder, rows.dtype, sets, lambda: row_sets.union([*nulls, lists.nulls]))

    def remap(
        self, facts: kind.SegmentFacts, row_map: kind.RowMap, folder: SegmentFolder
    ) -> kind.BuiltSegment:
        """Write a segment with other row ids; elements without rows are omitted."""
        segment = LabelListSegment(facts)
        sets, nulls = (
            keyed_sets.encode_sets(keyed_sets.map_sets(segment.sets(), row_map)),
            segment.null_lists(),
        )
        if nulls is None:
            return _write(folder, facts.dtype, sets, None)
        return _write(folder, facts.dtype, sets, lambda: keyed_sets.map_ids(nulls, row_map))


class _Lists:
    """The elements of lists to be indexed, and the rows whose list is null."""

    def __init__(self, rows: kind.BuildInput) -> None:
        self._batches = rows.batches
        self._element = element_type(rows.dtype)
        self.nulls = row_sets.EMPTY
        """Complete once the elements are read."""

    def sorted_elements(self) -> Iterator[pa.RecordBatch]:
        """Yield elements with the ids of their rows, in value order."""
        yield from sort.value_sorted(self._element, self._elements())

    def _elements(self) -> Iterator[pa.RecordBatch]:
        schema = sort.row_schema(self._element)
        for batch in self._batches:
            lists, ids = batch.column(kind.VALUE), batch.column(kind.ROW_ID).to_numpy()
            if lists.null_count:
                is_null = pc.is_null(lists).to_numpy(zero_copy_only=False)
                self.nulls |= row_sets.RowIds.of(ids[is_null])
            elements = pc.list_flatten(lists)
            if pa.types.is_dictionary(elements.type):
                elements = elements.dictionary_decode()
            parents = pc.list_parent_indices(lists).to_numpy()
            yield pa.RecordBatch.from_arrays([elements, pa.array(ids[parents])], schema=schema)


def element_type(dtype: pa.DataType) -> pa.DataType:
    """Return the type of the elements of a list, without the dictionary that they may have."""
    element = dtype.value_type
    return element.value_type if pa.types.is_dictionary(element) else element


def _write(
    folder: SegmentFolder,
    dtype: pa.DataType,
    sets: Iterable[keyed_sets.KeyedStoredSet],
    null_lists: Callable[[], row_sets.RowIds] | None,
) -> kind.BuiltSegment:
    """Write the sets; without the null lists this is a segment of the version before."""
    file = keyed_sets.write_sets(folder, dtype.value_type, sets, null_lists=null_lists)
    version = _VERSION if null_lists is not None else _VERSION - 1
    return kind.BuiltSegment(details=_DETAILS, index_version=version, files=(file,))


LABEL_LIST = LabelList()
