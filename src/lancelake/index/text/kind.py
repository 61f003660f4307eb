"""Index kind INVERTED: full text search of string columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.data.codec.index_file import SegmentFolder
from lancelake.engine.port import Stages
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.format.index_meta import IndexDetails
from lancelake.index import cache, kind
from lancelake.index.row_sets import RowIds, U64Array, has_repeats
from lancelake.index.text.analyzer import Analyzer
from lancelake.index.text.build import (
    OCCURRENCES_AT_ONCE,
    RowFilter,
    TextIndexWriter,
    merge_text_parts,
    text_parts,
    write_text_part,
)
from lancelake.index.text.parameters import KIND, TextParameters, unsupported
from lancelake.index.text.partition import (
    EARLY_POSTINGS_FILE,
    METADATA_FILE,
    StoredPartition,
    TextLayout,
    read_layout,
)
from lancelake.index.text.text_columns import is_document

_DROPPED = np.uint64(kind.DROPPED)
_FILES = frozenset((METADATA_FILE, EARLY_POSTINGS_FILE))


class _Inverted(kind.IndexKind):
    """The kind."""

    name = KIND
    details_type = "invertedindexdetails"
    max_version = 3
    is_ranked = has_stages = has_documents = True

    def accepts(self, dtype: pa.DataType) -> bool:
        """Whether columns of a type can be indexed: strings, or lists of strings."""
        return is_document(dtype)

    def supports(self, details: IndexDetails) -> bool:
        """Whether texts are divided here as the details ask for."""
        return unsupported(details) is None

    def wrote(self, names: Collection[str], dtype: pa.DataType) -> bool:
        """Whether there are metadata of partitions, or posting lists of an early release."""
        return not _FILES.isdisjoint(names) and self.accepts(dtype)

    def build(self, rows: kind.BuildInput, folder: SegmentFolder) -> kind.BuiltSegment:
        """Write an index of texts."""
        return _write((), rows, TextParameters.requested(rows.parameters), folder)

    def open(self, facts: kind.SegmentFacts) -> TextSegment:
        """Open a segment."""
        return TextSegment(facts)

    def can_merge(self, segments: Sequence[kind.SegmentFacts]) -> bool:
        """Whether segments divide texts into the same terms, and store the same of them."""
        return len({read_layout(facts.folder).parameters for facts in segments}) <= 1

    def merge(
        self, segments: kind.Segments, rows: kind.BuildInput, folder: SegmentFolder
    ) -> kind.BuiltSegment:
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
        return _write(olds, rows, parameters, folder)

    def remap(
        self, facts: kind.SegmentFacts, row_map: kind.RowMap, folder: SegmentFolder
    ) -> kind.BuiltSegment | None:
        """Write a segment with the new ids of its rows."""
        old = TextSegment(facts)
        try:
            parameters = old.layout.parameters
        except UnsupportedError:
            return None
        none = kind.BuildInput(dtype=facts.dtype, batches=())
        return _write([(old, _following(row_map))], none, parameters, folder)

    def write_part(self, rows: kind.BuildInput, folder: SegmentFolder, first_fragment: int) -> None:
        """Write the partitions of some texts, and the metadata of the part."""
        write_text_part(folder, first_fragment, rows.parameters, rows.batches)

    def merge_parts(
        self, folder: SegmentFolder, names: Iterable[str], stages: Stages
    ) -> Sequence[str]:
        """Write the metadata of an index with the partitions of all parts."""
        parts = text_parts(names)
        if parts:
            merge_text_parts(folder, parts, stages)
        return parts


def _write(
    olds: Sequence[tuple[TextSegment, RowFilter]],
    rows: kind.BuildInput,
    parameters: TextParameters,
    folder: SegmentFolder,
) -> kind.BuiltSegment:
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


def _following(row_map: kind.RowMap) -> RowFilter:
    def choose(ids: U64Array) -> tuple[npt.NDArray[np.bool_], U64Array]:
        new = row_map(ids)
        is_kept = new != _DROPPED
        return is_kept, new[is_kept]

    return choose


class TextSegment(kind.OpenSegment):
    """A segment that can be searched."""

    def __init__(self, facts: kind.SegmentFacts) -> None:
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

    def entries(self) -> Iterator[pa.RecordBatch]:
        """Stream nothing: segments are merged by their posting lists."""
        yield from ()

    def prewarm(self) -> None:
        """Read the terms and the documents."""
        for partition in self.partitions:
            partition.prewarm()

    def has_rows_twice(self) -> bool:
        """Whether two documents are of the same row."""

        def repeats() -> bool:
            return has_repeats([partition.documents.row_ids for partition in self.partitions])

        return cache.kept(cache.of(self._facts.folder.place), "repeats", repeats, lambda _: 0)

    def verify(self) -> None:
        """Read all terms, documents and posting lists."""
        for partition in self.partitions:
            partition.verify(with_position=self.layout.parameters.with_position)

    def statistics(self) -> Mapping[str, Any]:
        """Return the parameters, and how many terms and documents there are."""
        return {
            "params": self.layout.parameters.document(),
            "num_tokens": sum(len(partition.terms) for partition in self.partitions),
            "num_docs": sum(len(partition.documents) for partition in self.partitions),
        }

    def parameters(self) -> kind.Parameters:
        """Return the parameters that the segment was built with."""
        return self.layout.parameters.given()


INVERTED = _Inverted()
