"""Building text indices: terms are collected, sorted, and written as partitions.

Each time the collected occurrences reach a limit they become a partition, so memory is bounded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from lancelake.data.codec.index_file import SegmentFolder
from lancelake.engine.port import Advance, Stages
from lancelake.errors import InvalidRequestError
from lancelake.format.index_meta import IndexFile
from lancelake.index.kind import ROW_ID, VALUE, BuiltSegment, Parameters
from lancelake.index.row_sets import U64Array
from lancelake.index.text import partition as names
from lancelake.index.text import postings
from lancelake.index.text.analyzer import Analyzer
from lancelake.index.text.bm25 import document_norms, document_weights, inverse_frequency
from lancelake.index.text.parameters import TextParameters
from lancelake.index.text.partition import (
    METADATA_FILE,
    Documents,
    StoredPartition,
    TermPosting,
    part_file,
    read_layout,
)
from lancelake.index.text.postings import FIXED_TAIL, POSTING_TYPE, PostingLists
from lancelake.index.text.terms import SortedTerms
from lancelake.index.text.text_columns import documents

U32 = npt.NDArray[np.uint32]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PartitionContent:
    """Posting lists of a partition, complete: terms in order, and documents."""

    words: pa.Array
    lists: PostingLists
    positions: U32 | None
    ids: U64Array
    lengths: U32


class CollectedTerms:
    """Occurrences of terms in documents that are not written yet."""

    def __init__(self, *, with_position: bool) -> None:
        self._with_position = with_position
        self._clear()

    def _clear(self) -> None:
        self.size = 0
        self._terms: list[U32] = []
        self._texts: list[U32] = []
        self._places: list[U32] = []
        self._ids: list[U64Array] = []
        self._lengths: list[U32] = []
        self._documents = 0

    def add(self, terms: U32, texts: U32, places: U32, ids: U64Array) -> None:
        """Add the terms of texts, and the rows of the texts."""
        self.collect(terms, texts, places)
        self.add_documents(ids)

    def collect(self, terms: U32, texts: U32, places: U32 | None) -> None:
        """Add terms of texts whose rows are added afterwards."""
        self._terms.append(terms)
        self._texts.append(texts + np.uint32(self._documents))
        if self._with_position and places is not None:
            self._places.append(places)
        self.size += len(terms)

    def add_documents(self, ids: U64Array, lengths: U32 | None = None) -> None:
        """Add the rows of texts, and how many terms each has if not all were added."""
        self._ids.append(ids)
        if lengths is not None:
            self._lengths.append(lengths)
        self._documents += len(ids)

    def taken(self, words: Sequence[str]) -> PartitionContent | None:
        """Return all occurrences as posting lists, and clear them; None if there are none."""
        if not self.size:
            self._clear()
            return None
        terms, texts = np.concatenate(self._terms), np.concatenate(self._texts)
        places = np.concatenate(self._places) if self._with_position else None
        ids = np.concatenate(self._ids)
        lengths = (
            np.concatenate(self._lengths)
            if self._lengths
            else np.bincount(texts, minlength=len(ids)).astype(np.uint32)
        )
        self._clear()
        # A text without a term is not a document.
        numbers = (np.cumsum(lengths > 0) - 1).astype(np.uint32)
        order, rank, sorted_words = _order(terms, words)
        terms, texts = rank[terms[order]], numbers[texts[order]]
        places = None if places is None else places[order]
        is_new = np.ones(len(terms), np.bool_)
        is_new[1:] = (terms[1:] != terms[:-1]) | (texts[1:] != texts[:-1])
        starts = np.flatnonzero(is_new)
        frequencies = np.diff(np.append(starts, len(terms))).astype(np.uint32)
        counts = np.bincount(terms[starts], minlength=len(sorted_words))
        lists = PostingLists(np.cumsum(counts), texts[starts], frequencies)
        has_terms = lengths > 0
        return PartitionContent(sorted_words, lists, places, ids[has_terms], lengths[has_terms])


def _order(terms: U32, words: Sequence[str]) -> tuple[I64, U32, pa.Array]:
    """Return the order of occurrences by term, the place of each term, and the terms in order.

    Terms that do not occur are left out.
    """
    is_used = np.zeros(len(words), np.bool_)
    is_used[terms] = True
    used = np.flatnonzero(is_used)
    used_words = pa.array([words[i] for i in used.tolist()], pa.large_string())
    places = np.asarray(pc.sort_indices(used_words))
    rank = np.zeros(len(words), np.uint32)
    rank[used[places]] = np.arange(len(places), dtype=np.uint32)
    keys = rank[terms]
    # NumPy sorts 16-bit numbers by radix.
    order = np.argsort(keys.astype(np.uint16), kind="stable")
    if len(places) > 1 << 16:
        order = order[np.argsort((keys >> np.uint32(16)).astype(np.uint16)[order], kind="stable")]
    return order, rank, used_words.take(pa.array(places))


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


def _join(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
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
        for batch in _join(batches):
            part = batch.filter(batch.column(VALUE).is_valid())
            terms = self._analyzer.occurrences(documents(part.column(VALUE)))
            ids = np.asarray(part.column(ROW_ID), dtype=np.uint64)
            self._pending.add(terms.terms, terms.texts, terms.positions, ids)
            self._flush_if_full()
            if advance is not None:
                advance(batch.num_rows)

    def add_partition(self, partition: StoredPartition, choose: RowFilter) -> None:
        """Add the kept rows of a partition of another index with the same parameters."""
        documents = partition.documents
        is_kept, ids = choose(documents.row_ids)
        numbers = np.cumsum(is_kept) - 1
        for terms, texts, places in self._occurrences(partition):
            is_chosen = is_kept[texts]
            self._pending.collect(
                terms[is_chosen],
                numbers[texts[is_chosen]].astype(np.uint32),
                None if places is None else places[is_chosen],
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
        self._files += _write(self._folder, number, taken, self._parameters)

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


def _write(
    folder: SegmentFolder, number: int, taken: PartitionContent, parameters: TextParameters
) -> list[IndexFile]:
    count = len(taken.words)
    tokens = folder.create(part_file(number, names.TOKENS), _TOKENS)
    ids = pa.array(np.arange(count, dtype=np.uint32))
    tokens.write(pa.RecordBatch.from_arrays([taken.words.cast(pa.string()), ids], schema=_TOKENS))
    documents = folder.create(part_file(number, names.DOCUMENTS), _DOCUMENTS)
    columns = [pa.array(taken.ids), pa.array(taken.lengths)]
    documents.write(pa.RecordBatch.from_arrays(columns, schema=_DOCUMENTS))
    total = int(taken.lengths.sum(dtype=np.uint64))
    schema = _postings_schema(with_position=parameters.with_position)
    invert = folder.create(part_file(number, names.POSTINGS), schema)
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
        fields.append(pa.field(names.POSITION, postings.POSITION_TYPE, nullable=False))
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
            positions_of_part = taken.positions[occurrences[low] : occurrences[high]]
            columns.append(
                postings.encode_positions(part.ends, part.frequencies, positions_of_part)
            )
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
        first = stop


def _weights(counts: I64, num_docs: int) -> F32:
    unique, inverse = np.unique(counts, return_inverse=True)
    weights = [inverse_frequency(count, num_docs) for count in unique.tolist()]
    return np.array(weights, np.float32)[inverse]


_PARTS_METADATA = re.compile(r"part_(\d+)_metadata\.lance")
# Partitions of a part are numbered from the number of its first fragment on, above these bits.
_PARTITION_BITS = 32


def write_text_part(
    folder: SegmentFolder,
    first_fragment: int,
    parameters: Parameters,
    batches: Iterable[pa.RecordBatch],
) -> None:
    """Write the partitions of some rows, and the metadata of the part."""
    first = first_fragment << _PARTITION_BITS
    requested = TextParameters.requested(parameters)
    writer = TextIndexWriter(folder, requested, OCCURRENCES_AT_ONCE, first=first)
    writer.add_texts(batches)
    writer.finish(part_file(first, "metadata"))


def text_parts(names: Iterable[str]) -> list[str]:
    """Return the metadata files of parts among the files of a folder, by number."""
    matches = [match for name in names if (match := _PARTS_METADATA.fullmatch(name)) is not None]
    return [match[0] for match in sorted(matches, key=lambda match: int(match[1]))]


def merge_text_parts(folder: SegmentFolder, parts: Sequence[str], stages: Stages) -> None:
    """Write the metadata of the index that has the partitions of all parts."""
    layouts = []
    with stages.stage("read_partition_metadata", len(parts), "files") as advance:
        for name in parts:
            layouts.append(read_layout(folder, name))
            advance(1)
    parameters = layouts[0].parameters
    with stages.stage("remap_partition_files", len(parts), "files"):
        if any(layout.parameters != parameters for layout in layouts):
            problem = "parts of a text index with different parameters cannot be merged"
            raise InvalidRequestError(problem)
        partitions = [number for layout in layouts for number in layout.partitions]
    with stages.stage("write_merged_metadata", unit="files"):
        write_metadata(folder, METADATA_FILE, partitions, parameters)


class MemoryPartition:
    """The terms of some texts."""

    key: None = None

    def __init__(self, content: PartitionContent) -> None:
        self._content = content
        self.documents = Documents.of(content.ids, content.lengths)
        numbers = np.arange(len(content.words), dtype=np.uint32)
        self.terms = SortedTerms(content.words, numbers)
        self._occurrences = np.concatenate(
            [np.zeros(1, np.int64), np.cumsum(content.lists.frequencies, dtype=np.int64)]
        )

    def _bounds(self, number: int) -> tuple[int, int]:
        ends = self._content.lists.ends
        return (int(ends[number - 1]) if number else 0), int(ends[number])

    def frequency(self, number: int) -> int:
        """Return how many documents have a term."""
        low, high = self._bounds(number)
        return high - low

    def posting(self, number: int) -> TermPosting:
        """Return the documents of a term."""
        part = slice(*self._bounds(number))
        lists = self._content.lists
        return TermPosting(lists.documents[part], lists.frequencies[part])

    def positions(self, number: int) -> U32:
        """Return the positions of a term in its documents."""
        low, high = self._bounds(number)
        places = self._content.positions
        if places is None:
            return np.zeros(0, np.uint32)
        return places[self._occurrences[low] : self._occurrences[high]]


def memory_partition(
    analyzer: Analyzer,
    batches: Iterable[pa.RecordBatch],
    *,
    with_position: bool,
    only: Collection[str] | None = None,
) -> MemoryPartition | None:
    """Return the terms of rows, in batches of texts and row ids; None if there are none.

    With `only`, no other terms are kept: memory grows with the rows, not with their texts.
    """
    pending = CollectedTerms(with_position=with_position)
    wanted = None if only is None else [analyzer.number_of(term) for term in only]
    for batch in batches:
        rows = batch.filter(batch.column(VALUE).is_valid())
        terms = analyzer.occurrences(documents(rows.column(VALUE)))
        ids = np.asarray(rows.column(ROW_ID), dtype=np.uint64)
        lengths = np.bincount(terms.texts, minlength=len(ids)).astype(np.uint32)
        is_wanted = slice(None) if wanted is None else np.isin(terms.terms, wanted)
        pending.collect(terms.terms[is_wanted], terms.texts[is_wanted], terms.positions[is_wanted])
        pending.add_documents(ids, lengths)
    content = pending.taken(analyzer.terms)
    return None if content is None else MemoryPartition(content)
