"""Partitions of a full text index: their files, and the layouts in which releases write them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.data.codec.index_file import IndexFileReader, SegmentFolder
from lancelake.errors import CorruptTableError, InvalidRequestError, UnsupportedError
from lancelake.index import cache
from lancelake.index.row_sets import U64Array
from lancelake.index.text import postings
from lancelake.index.text.bm25 import rounded_lengths
from lancelake.index.text.parameters import (
    BLOCK_DOCS,
    BLOCK_SIZES,
    FORMAT_VERSION,
    TextParameters,
)
from lancelake.index.text.postings import FIXED_TAIL, SharedCodec
from lancelake.index.text.terms import SortedTerms, Terms, TransducedTerms, Transducer

METADATA_FILE = "metadata.lance"
EARLY_POSTINGS_FILE = "invert.lance"
"""Of releases before 0.29, whose segments have no partitions; these are not read."""
TOKENS, DOCUMENTS, POSTINGS = "tokens", "docs", "invert"
"""Contents of the files of a partition."""
DELETED_FRAGMENTS = "deleted_fragments"
ROW_ID, NUM_TOKENS = "_rowid", "_num_tokens"
TOKEN, TOKEN_ID, TOKEN_FST = "_token", "_token_id", "_token_fst_bytes"
POSTING, MAX_SCORE, LENGTH = "_posting", "_max_score", "_length"
POSITION = "_position"
SHARED_POSITIONS, POSITION_OFFSETS = "_compressed_position", "_position_block_offset"

PARTITIONS, PARAMS = "partitions", "params"
TOKEN_SET_FORMAT, TAIL_CODEC = "token_set_format", "posting_tail_codec"
ARROW_TOKENS, FST_TOKENS = "arrow", "fst"
_BLOCK_SIZE = "posting_block_size"
_POSITIONS_LAYOUT, _POSITIONS_CODEC = "positions_layout", "positions_codec"
_SHARED_LAYOUT = "shared_stream_v2"


def part_file(number: int, content: str) -> str:
    """Return the name of the file with some content of a partition, or of a part of an index."""
    return f"part_{number}_{content}.lance"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLayout:
    """What the metadata of an index states: its partitions, parameters and encodings."""

    partitions: tuple[int, ...]
    parameters: TextParameters
    token_format: str
    tail: str
    shared_positions: SharedCodec | None
    block_docs: int
    """Documents per block of a posting list."""

    @property
    def has_rounded_lengths(self) -> bool:
        """Whether scores round the lengths of documents: with blocks of other sizes than 128."""
        return self.block_docs != BLOCK_DOCS


def read_layout(folder: SegmentFolder, name: str = METADATA_FILE) -> TextLayout:
    """Read the metadata of an index, or of a part of one."""
    path = folder.file(name).path
    file: IndexFileReader = folder.open(name)
    metadata = file.metadata
    tokens = metadata.get(TOKEN_SET_FORMAT, ARROW_TOKENS)
    if tokens not in (ARROW_TOKENS, FST_TOKENS):
        raise UnsupportedError(
            f"text indices with the term format {tokens!r} are not supported", path=path
        )
    text, is_current = metadata.get(PARAMS, ""), FORMAT_VERSION in metadata
    return TextLayout(
        partitions=_partitions(metadata.get(PARTITIONS, ""), path),
        parameters=TextParameters.stored(text, is_current=is_current, path=path),
        token_format=tokens,
        tail=metadata.get(TAIL_CODEC, FIXED_TAIL),
        shared_positions=_shared_positions(metadata, path),
        block_docs=_block_docs(metadata, path),
    )


def postings_layout(layout: TextLayout, metadata: Mapping[str, str], path: str) -> TextLayout:
    """Return the layout of a posting file by its metadata.

    The partitions of an index differ if releases with other layouts added them.
    """
    if FORMAT_VERSION not in metadata:
        return layout
    return replace(
        layout,
        tail=metadata.get(TAIL_CODEC, FIXED_TAIL),
        shared_positions=_shared_positions(metadata, path),
        block_docs=_block_docs(metadata, path),
    )


def _block_docs(metadata: Mapping[str, str], path: str) -> int:
    size = metadata.get(_BLOCK_SIZE, str(BLOCK_DOCS))
    if size not in map(str, BLOCK_SIZES):
        raise UnsupportedError(
            f"text indices with posting blocks of {size} documents are not supported", path=path
        )
    return int(size)


def _shared_positions(metadata: Mapping[str, str], path: str) -> SharedCodec | None:
    """Return how the documents of a block share their positions; None if they do not."""
    layout = metadata.get(_POSITIONS_LAYOUT)
    if layout is None:
        return None
    if layout != _SHARED_LAYOUT:
        problem = f"text indices with the position layout {layout!r} are not supported"
        raise UnsupportedError(problem, path=path)
    return _codec(metadata.get(_POSITIONS_CODEC, ""), path)


def _codec(name: str, path: str) -> SharedCodec:
    try:
        return SharedCodec(name)
    except ValueError as error:
        problem = f"text indices are not supported with the position encoding {name!r}"
        raise UnsupportedError(problem, path=path) from error


def _partitions(text: str, path: str) -> tuple[int, ...]:
    try:
        numbers = json.loads(text)
    except (ValueError, RecursionError):
        numbers = None
    is_list = isinstance(numbers, list) and all(
        isinstance(each, int) and each >= 0 for each in numbers
    )
    if not is_list:
        raise CorruptTableError(f"index file {path} does not name its partitions", path=path)
    return tuple(numbers)


U32 = npt.NDArray[np.uint32]
I64 = npt.NDArray[np.int64]

_LISTS_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class TermPosting:
    """The documents of a term, ascending, and how often each has it."""

    documents: U32
    frequencies: U32

    @property
    def nbytes(self) -> int:
        """Memory of the posting list."""
        return self.documents.nbytes + self.frequencies.nbytes


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of a partition: the row and the number of terms of each."""

    row_ids: U64Array
    lengths: U32
    num_tokens: int
    """How many terms all documents have together."""
    scored_lengths: U32
    """The number of terms of each document as scores take it into account."""

    @staticmethod
    def of(row_ids: U64Array, lengths: U32, *, is_rounded: bool = False) -> Documents:
        """Return documents with their number of terms, which scores may round down."""
        scored = rounded_lengths(lengths) if is_rounded else lengths
        return Documents(row_ids, lengths, int(lengths.sum(dtype=np.uint64)), scored)

    def __len__(self) -> int:
        return len(self.row_ids)

    @property
    def nbytes(self) -> int:
        """Memory of the documents."""
        rounded = 0 if self.scored_lengths is self.lengths else self.scored_lengths.nbytes
        return self.row_ids.nbytes + self.lengths.nbytes + rounded


def missing_positions() -> InvalidRequestError:
    """Return the error for a phrase in an index without positions."""
    return InvalidRequestError(
        "position is not found but required for phrase queries",
        action="Build the index with with_position=True.",
    )


class StoredPartition:
    """A partition in the files of an index; what is read is cached."""

    def __init__(self, folder: SegmentFolder, number: int, layout: TextLayout) -> None:
        self._folder, self._number, self._layout = folder, number, layout
        self._path = folder.file(part_file(number, POSTINGS)).path
        self.key = cache.of(folder.place, number)

    @cached_property
    def _file(self) -> IndexFileReader:
        file = self._folder.open(part_file(self._number, POSTINGS))
        file.require(POSTING, LENGTH)
        return file

    @cached_property
    def _postings_layout(self) -> TextLayout:
        return postings_layout(self._layout, self._file.metadata, self._path)

    @property
    def documents(self) -> Documents:
        """The documents, in the order of their numbers."""
        return cache.kept(self.key, "documents", self._read_documents, lambda value: value.nbytes)

    def _read_documents(self) -> Documents:
        file = self._folder.open(part_file(self._number, DOCUMENTS))
        file.require(ROW_ID, NUM_TOKENS)
        table = file.read(columns=[ROW_ID, NUM_TOKENS])
        ids = np.asarray(table.column(0), dtype=np.uint64)
        lengths = np.asarray(table.column(1), dtype=np.uint32)
        return Documents.of(ids, lengths, is_rounded=self._layout.has_rounded_lengths)

    @property
    def terms(self) -> Terms:
        """The terms with the rows of their posting lists."""
        return cache.kept(self.key, "terms", self._read_terms, lambda _: self._terms_bytes)

    @cached_property
    def _terms_bytes(self) -> int:
        return 96 * self._file.num_rows

    def _read_terms(self) -> Terms:
        name = part_file(self._number, TOKENS)
        file = self._folder.open(name)
        what = f"index file {self._folder.file(name).path}"
        if self._layout.token_format == FST_TOKENS:
            file.require(TOKEN_FST)
            data = file.read(0, 1, columns=[TOKEN_FST]).column(0)
            if len(data) != 1:
                raise CorruptTableError(f"{what} has no term dictionary")
            return TransducedTerms(Transducer(data[0].as_py(), what))
        file.require(TOKEN, TOKEN_ID)
        table = file.read(columns=[TOKEN, TOKEN_ID])
        words = table.column(0).cast(pa.large_string()).combine_chunks()
        numbers = np.asarray(table.column(1), dtype=np.uint32)
        order = pc.sort_indices(words)
        words = pa.concat_arrays(words.chunks) if isinstance(words, pa.ChunkedArray) else words
        return SortedTerms(words.take(order), numbers[np.asarray(order)])

    def frequency(self, number: int) -> int:
        """Return how many documents have a term."""
        return int(self._lengths[self._row(number)])

    @property
    def _lengths(self) -> U32:
        def read() -> U32:
            column = self._file.read(columns=[LENGTH]).column(0)
            return np.asarray(column, dtype=np.uint32)

        return cache.kept(self.key, "lengths", read, lambda value: int(value.nbytes))

    def _row(self, number: int) -> int:
        if number >= self._file.num_rows:
            problem = f"index file {self._path} has no posting list {number}"
            raise CorruptTableError(problem, path=self._path)
        return number

    def posting(self, number: int) -> TermPosting:
        """Return the documents of a term."""
        row = self._row(number)
        return cache.kept(
            self.key, ("posting", number), lambda: self._read(row), lambda value: value.nbytes
        )

    def _read(self, row: int) -> TermPosting:
        cache.count_loaded(1)
        table = self._file.take([row], columns=[POSTING, LENGTH])
        (lists,) = self._decode(table)
        return TermPosting(lists.documents, lists.frequencies)

    def _decode(self, table: pa.Table) -> Iterator[postings.PostingLists]:
        for batch in table.combine_chunks().to_batches():
            lengths = np.asarray(batch.column(1)).astype(np.int64)
            what = f"index file {self._path}"
            if len(lengths) and int(lengths.max()) > len(self.documents):
                problem = f"{what} has a list of more documents than exist"
                raise CorruptTableError(problem, path=self._path)
            layout = self._postings_layout
            lists = postings.decode(batch.column(0), lengths, layout.tail, what, layout.block_docs)
            if len(lists.documents) and int(lists.documents.max()) >= len(self.documents):
                problem = f"{what} refers to documents that do not exist"
                raise CorruptTableError(problem, path=self._path)
            yield lists

    def positions(self, number: int) -> U32:
        """Return the positions of a term in its documents."""
        row = self._row(number)
        return cache.kept(
            self.key,
            ("positions", number),
            lambda: self._read_positions(row),
            lambda value: int(value.nbytes),
        )

    def prewarm(self) -> None:
        """Read what each search needs."""
        _ = self.documents, self.terms, self._lengths

    def verify(self, *, with_position: bool) -> None:
        """Read all terms and posting lists, and raise CorruptTableError for damage."""
        numbers = self.terms.numbers
        if len(numbers):
            self._row(int(numbers.max()))
        for _ in self.lists(with_position=with_position):
            pass

    def _read_positions(self, row: int) -> U32:
        table = self._file.take([row], columns=self._position_columns())
        return self._decode_positions(table, [self.posting(row).frequencies])

    def _position_columns(self) -> list[str]:
        """Return the columns of positions; raise if there are none."""
        if self._postings_layout.shared_positions is not None:
            columns = [SHARED_POSITIONS, POSITION_OFFSETS]
            self._file.require(*columns)
            return columns
        if POSITION not in self._file.schema.names:
            raise missing_positions()
        return [POSITION]

    def _decode_positions(self, table: pa.Table, frequencies: Sequence[U32]) -> U32:
        """Decode the positions of some posting lists with the frequencies of each."""
        what = f"index file {self._path}"
        codec = self._postings_layout.shared_positions
        none = np.zeros(0, np.uint32)
        if codec is None:
            lists = pa.concat_arrays(table.column(0).chunks)
            return postings.decode_positions(lists, np.concatenate([none, *frequencies]), what)
        streams, offsets = table.column(0).to_pylist(), table.column(1).to_pylist()
        block = self._postings_layout.block_docs
        parts = [
            postings.decode_shared(stream, np.array(bounds, np.int64), counts, codec, what, block)
            for stream, bounds, counts in zip(streams, offsets, frequencies, strict=True)
        ]
        return np.concatenate([none, *parts])

    def lists(
        self, *, with_position: bool
    ) -> Iterator[tuple[int, postings.PostingLists, U32 | None]]:
        """Yield all posting lists, several at once: number of the first, lists, positions."""
        for start in range(0, self._file.num_rows, _LISTS_AT_ONCE):
            stop = min(start + _LISTS_AT_ONCE, self._file.num_rows)
            table = self._file.read(start, stop, columns=[POSTING, LENGTH])
            (lists,) = self._decode(table)
            places = None
            if with_position:
                placed = self._file.read(start, stop, columns=self._position_columns())
                each = np.split(lists.frequencies, lists.ends[:-1])
                places = self._decode_positions(placed, each)
            yield start, lists, places
