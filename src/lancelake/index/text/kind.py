"""Index kind INVERTED: full text search of string columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.data.codec.index_file import SegmentFolder
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.expr.condition import Leaf
from lancelake.index.answer import Answer
from lancelake.index.kind import (
    DROPPED,
    BuildInput,
    BuiltSegment,
    IdKind,
    IndexKind,
    Order,
    Parameters,
    RowMap,
    SegmentFacts,
)
from lancelake.index.row_ids import RowIds, U64Array
from lancelake.index.text.analyzer import Analyzer
from lancelake.index.text.build import OCCURRENCES_AT_ONCE, RowFilter, TextIndexWriter
from lancelake.index.text.documents import is_document
from lancelake.index.text.layout import TextLayout, read_layout
from lancelake.index.text.parameters import KIND, TextParameters
from lancelake.index.text.partition import StoredPartition

_DROPPED = np.uint64(DROPPED)


class _Inverted:
    """The kind."""

    name = KIND
    details_type = "invertedindexdetails"
    max_version = 3
    order = Order.ROW

    def accepts(self, dtype: pa.DataType) -> bool:
        """Whether columns of a type can be indexed: strings, or lists of strings."""
        return is_document(dtype)

    def stored_ids(self, index_version: int, *, has_stable_row_ids: bool) -> IdKind:
        """Return the kind of ids in a segment: stable row ids if the table has them."""
        return IdKind.STABLE_ID if has_stable_row_ids else IdKind.ADDRESS

    def build(self, rows: BuildInput, folder: SegmentFolder) -> BuiltSegment:
        """Write an index of texts."""
        return _written((), rows, TextParameters.requested(rows.parameters), folder)

    def open(self, facts: SegmentFacts) -> TextSegment:
        """Open a segment."""
        return TextSegment(facts)

    def merge(
        self,
        segments: Sequence[tuple[SegmentFacts, RowIds | None]],
        rows: BuildInput,
        folder: SegmentFolder,
    ) -> BuiltSegment:
        """Write an index of the kept rows of segments and of new texts.

        Segments whose parameters differ from those of the first cannot be merged.
        """
        if not segments:
            return self.build(rows, folder)
        olds = [(TextSegment(facts), _keeping(keep)) for facts, keep in segments]
        parameters = olds[0][0].layout.parameters
        if any(segment.layout.parameters != parameters for segment, _ in olds):
            raise InvalidRequestError(
                "segments of a text index with different parameters cannot be merged",
                action="Build the index again: optimize_indices(retrain=True).",
            )
        return _written(olds, rows, parameters, folder)

    def remap(
        self, facts: SegmentFacts, row_map: RowMap, folder: SegmentFolder
    ) -> BuiltSegment | None:
        """Write a segment with the new ids of its rows."""
        old = TextSegment(facts)
        try:
            parameters = old.layout.parameters
        except UnsupportedError:
            return None
        none = BuildInput(dtype=facts.dtype, batches=())
        return _written([(old, _following(row_map))], none, parameters, folder)


def _written(
    olds: Sequence[tuple[TextSegment, RowFilter]],
    rows: BuildInput,
    parameters: TextParameters,
    folder: SegmentFolder,
) -> BuiltSegment:
    writer = TextIndexWriter(folder, parameters, OCCURRENCES_AT_ONCE)
    with rows.stages.stage("load_data"):
        for segment, choose in olds:
            for partition in segment.partitions:
                writer.add_partition(partition, choose)
    with rows.stages.stage("tokenize_docs", rows.num_rows) as advance:
        writer.add_texts(rows.batches, advance)
    return writer.finish(stages=rows.stages)


def _keeping(keep: RowIds | None) -> RowFilter:
    test = None if keep is None else keep.tester()

    def choose(ids: U64Array) -> tuple[npt.NDArray[np.bool_], U64Array]:
        if test is None:
            return np.ones(len(ids), np.bool_), ids
        is_kept = test(ids)
        return is_kept, ids[is_kept]

    return choose


def _following(row_map: RowMap) -> RowFilter:
    def choose(ids: U64Array) -> tuple[npt.NDArray[np.bool_], U64Array]:
        new = row_map(ids)
        is_kept = new != _DROPPED
        return is_kept, new[is_kept]

    return choose


class TextSegment:
    """A segment that can be searched."""

    def __init__(self, facts: SegmentFacts) -> None:
        self._facts = facts

    @cached_property
    def layout(self) -> TextLayout:
        """What the metadata of the segment states."""
        return read_layout(self._facts.folder)

    @cached_property
    def analyzer(self) -> Analyzer:
        """What divides texts into the terms of the segment."""
        return Analyzer(self.layout.parameters)

    @cached_property
    def partitions(self) -> tuple[StoredPartition, ...]:
        """The partitions."""
        return tuple(
            StoredPartition(self._facts.folder, number, self.layout)
            for number in self.layout.partitions
        )

    def answer(self, leaf: Leaf) -> Answer | None:
        """Answer no condition of a filter: full text queries are another kind of search."""
        return None

    def entries(self) -> Iterator[pa.RecordBatch]:
        """Stream nothing: segments are merged by their posting lists."""
        yield from ()

    def prewarm(self) -> None:
        """Read the terms and the documents."""
        for partition in self.partitions:
            partition.prewarm()

    def statistics(self) -> Mapping[str, Any]:
        """Return the parameters, and how many terms and documents there are."""
        return {
            "params": self.layout.parameters.document(),
            "num_tokens": sum(len(partition.terms) for partition in self.partitions),
            "num_docs": sum(len(partition.documents) for partition in self.partitions),
        }

    def parameters(self) -> Parameters:
        """Return the parameters that the segment was built with."""
        return self.layout.parameters.given()


INVERTED: IndexKind = _Inverted()
