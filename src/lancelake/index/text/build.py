"""Build of a full text index: occurrences of terms are collected, sorted and written.

Each time the collected occurrences reach a limit they become a partition, so memory is bounded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from lancelake.data.codec.index_file import SegmentFolder
from lancelake.engine.stages import Advance, Stages
from lancelake.format.index_meta import IndexFile
from lancelake.index.kind import ROW_ID, VALUE, BuiltSegment
from lancelake.index.row_ids import U64Array
from lancelake.index.text import layout as names
from lancelake.index.text import positions, postings
from lancelake.index.text.analyzer import Analyzer
from lancelake.index.text.bm25 import document_norms, document_weights, inverse_frequency
from lancelake.index.text.collected import CollectedTerms, PartitionContent
from lancelake.index.text.documents import documents
from lancelake.index.text.parameters import TextParameters
from lancelake.index.text.partition import StoredPartition
from lancelake.index.text.postings import FIXED_TAIL, POSTING_TYPE, PostingLists

U32 = npt.NDArray[np.uint32]
I64 = npt.NDArray[np.int64]
F32 = npt.NDArray[np.float32]

OCCURRENCES_AT_ONCE = 16 << 20
"""Occurrences of terms in memory, about: 12 bytes each, and 40 more while they are sorted."""
_TEXTS_AT_ONCE = 1 << 17
_TEXT_BYTES_AT_ONCE = 32 << 20
_POSTINGS_AT_ONCE = 1 << 20

RowFilter = Callable[[U64Array], tuple[npt.NDArray[np.bool_], U64Array]]
"""Which of some rows are kept, and the ids of those."""

_TOKENS = pa.schema(
    [
        pa.field(names.TOKEN, pa.string(), nullable=False),
        pa.field(names.TOKEN_ID, pa.uint32(), nullable=False),
    ]
)
_DOCUMENTS = pa.schema(
    [
        pa.field(names.ROW_ID, pa.uint64(), nullable=False),
        pa.field(names.NUM_TOKENS, pa.uint32(), nullable=False),
    ]
)
_METADATA = pa.schema([pa.field(names.DELETED_FRAGMENTS, pa.binary(), nullable=False)])


def _joined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join small batches and divide large ones: words of many texts together repeat more often."""
    pending: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        for start in range(0, batch.num_rows, _TEXTS_AT_ONCE):
            pending.append(batch.slice(start, _TEXTS_AT_ONCE))
            rows += pending[-1].num_rows
            size += pending[-1].nbytes
            if rows >= _TEXTS_AT_ONCE or size >= _TEXT_BYTES_AT_ONCE:
                yield pa.concat_batches(pending)
                pending, rows, size = [], 0, 0
    if pending:
        yield pa.concat_batches(pending)


class TextIndexWriter:
    """Writes the files of an index."""

    def __init__(
        self,
        folder: SegmentFolder,
        parameters: TextParameters,
        occurrences_at_once: int,
        *,
        first: int = 0,
    ) -> None:
        """Number the partitions from `first` on."""
        self._folder, self._parameters = folder, parameters
        self._limit = occurrences_at_once
        self._analyzer = Analyzer(parameters)
        self._pending = CollectedTerms(with_position=parameters.with_position)
        self._files: list[IndexFile] = []
        self._first = self._next = first

    def add_texts(self, batches: Iterable[pa.RecordBatch], advance: Advance | None = None) -> None:
        """Add rows: texts and their row ids; null texts are left out."""
        for batch in _joined(batches):
            part = batch.filter(batch.column(VALUE).is_valid())
            found = self._analyzer.occurrences(documents(part.column(VALUE)))
            ids = np.asarray(part.column(ROW_ID), dtype=np.uint64)
            self._pending.add(found.terms, found.texts, found.positions, ids)
            self._flush_if_full()
            if advance is not None:
                advance(batch.num_rows)

    def add_partition(self, partition: StoredPartition, choose: RowFilter) -> None:
        """Add the kept rows of a partition of another index with the same parameters."""
        documents = partition.documents
        kept, ids = choose(documents.row_ids)
        numbers = np.cumsum(kept) - 1
        for terms, texts, places in self._occurrences(partition):
            chosen = kept[texts]
            self._pending.collect(
                terms[chosen],
                numbers[texts[chosen]].astype(np.uint32),
                None if places is None else places[chosen],
            )
        self._pending.add_documents(ids)
        self._flush_if_full()

    def _occurrences(self, partition: StoredPartition) -> Iterator[tuple[U32, U32, U32 | None]]:
        """Yield the occurrences of terms in a partition, by term."""
        terms = partition.terms
        words = terms.words.to_pylist()
        numbers = np.zeros(len(words), np.uint32)
        numbers[terms.numbers] = [self._analyzer.number_of(word) for word in words]
        with_position = self._parameters.with_position
        for first, lists, places in partition.lists(with_position=with_position):
            counts = np.diff(lists.ends, prepend=0)
            rows = np.repeat(np.arange(first, first + len(counts)), counts)
            repeated = numbers[np.repeat(rows, lists.frequencies)]
            yield repeated, np.repeat(lists.documents, lists.frequencies), places

    def _flush_if_full(self) -> None:
        if self._pending.size >= self._limit:
            self._flush()

    def _flush(self) -> None:
        taken = self._pending.taken(self._analyzer.terms)
        self._analyzer.forget()
        if taken is None:
            return
        number = self._next
        self._next += 1
        self._files += _written(self._folder, number, taken, self._parameters)

    def finish(
        self, metadata_file: str = names.METADATA_FILE, stages: Stages | None = None
    ) -> BuiltSegment:
        """Write what is left, and the metadata of the index."""
        stages = stages or Stages()
        with stages.stage("copy_partitions", unit="partitions"):
            self._flush()
        partitions = range(self._first, self._next)
        with stages.stage("write_metadata", unit="files"):
            metadata = write_metadata(self._folder, metadata_file, partitions, self._parameters)
        self._files.append(metadata)
        return BuiltSegment(
            details=self._parameters.details(),
            index_version=self._parameters.index_version,
            files=tuple(self._files),
        )


def write_metadata(
    folder: SegmentFolder, name: str, partitions: Sequence[int], parameters: TextParameters
) -> IndexFile:
    """Write the file that names the partitions and parameters of an index."""
    writer = folder.create(name, _METADATA)
    none = pa.array([bytes(BitMap().serialize())], pa.binary())
    writer.write(pa.RecordBatch.from_arrays([none], schema=_METADATA))
    return writer.finish(
        {
            names.PARTITIONS: json.dumps(list(partitions)),
            names.PARAMS: json.dumps(parameters.document()),
            names.TOKEN_SET_FORMAT: names.ARROW_TOKENS,
            names.TAIL_CODEC: FIXED_TAIL,
            **parameters.layout_metadata,
        }
    )


def _written(
    folder: SegmentFolder, number: int, taken: PartitionContent, parameters: TextParameters
) -> list[IndexFile]:
    count = len(taken.words)
    tokens = folder.create(names.tokens_file(number), _TOKENS)
    ids = pa.array(np.arange(count, dtype=np.uint32))
    tokens.write(pa.RecordBatch.from_arrays([taken.words.cast(pa.string()), ids], schema=_TOKENS))
    documents = folder.create(names.documents_file(number), _DOCUMENTS)
    columns = [pa.array(taken.ids), pa.array(taken.lengths)]
    documents.write(pa.RecordBatch.from_arrays(columns, schema=_DOCUMENTS))
    total = int(taken.lengths.sum(dtype=np.uint64))
    schema = _postings_schema(with_position=parameters.with_position)
    invert = folder.create(names.postings_file(number), schema)
    norms = document_norms(taken.lengths, total / max(1, len(taken.lengths)))
    for batch in _posting_batches(taken, norms, schema):
        invert.write(batch)
    return [
        tokens.finish(),
        documents.finish({"total_tokens": str(total)}),
        invert.finish(),
    ]


def _postings_schema(*, with_position: bool) -> pa.Schema:
    fields = [
        pa.field(names.POSTING, POSTING_TYPE, nullable=False),
        pa.field(names.MAX_SCORE, pa.float32(), nullable=False),
        pa.field(names.LENGTH, pa.uint32(), nullable=False),
    ]
    if with_position:
        fields.append(pa.field(names.POSITION, positions.POSITION_TYPE, nullable=False))
    return pa.schema(fields)


def _posting_batches(
    taken: PartitionContent, norms: F32, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    lists = taken.lists
    starts = lists.starts
    occurrences = np.concatenate([[0], np.cumsum(lists.frequencies, dtype=np.int64)])
    first = 0
    while first < len(lists.ends):
        limit = int(starts[first]) + _POSTINGS_AT_ONCE
        stop = max(first + 1, int(np.searchsorted(lists.ends, limit, side="right")))
        low, high = int(starts[first]), int(lists.ends[stop - 1])
        part = PostingLists(
            lists.ends[first:stop] - low, lists.documents[low:high], lists.frequencies[low:high]
        )
        counts = lists.ends[first:stop] - starts[first:stop]
        weights = _weights(counts, len(taken.lengths))
        scores = document_weights(part.frequencies, norms[part.documents])
        scores = scores * np.repeat(weights, counts)
        blocks, best = postings.encode(part, scores)
        bounds = np.asarray(blocks.offsets)[:-1]
        columns = [
            blocks,
            pa.array(np.maximum.reduceat(best, bounds).astype(np.float32)),
            pa.array(counts.astype(np.uint32)),
        ]
        if taken.positions is not None:
            chosen = taken.positions[occurrences[low] : occurrences[high]]
            columns.append(positions.encode(part.ends, part.frequencies, chosen))
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
        first = stop


def _weights(counts: I64, num_docs: int) -> F32:
    unique, inverse = np.unique(counts, return_inverse=True)
    found = [inverse_frequency(count, num_docs) for count in unique.tolist()]
    return np.array(found, np.float32)[inverse]
