"""Partitions of a full text index: terms, documents and posting lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.data.codec.index_file import IndexFileReader, SegmentFolder
from lancelake.errors import CorruptTableError, InvalidRequestError
from lancelake.index import cache
from lancelake.index.row_ids import U64Array
from lancelake.index.text import layout as names
from lancelake.index.text import positions, postings
from lancelake.index.text.bm25 import rounded_lengths
from lancelake.index.text.fst import Transducer
from lancelake.index.text.layout import TextLayout
from lancelake.index.text.terms import SortedTerms, Terms, TransducedTerms

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


class TextPartition(Protocol):
    """Documents with the posting lists of their terms."""

    @property
    def key(self) -> str | None:
        """Name of the partition in the cache of index files; None if nothing is cached."""
        ...

    @property
    def documents(self) -> Documents:
        """The documents."""
        ...

    @property
    def terms(self) -> Terms:
        """The terms."""
        ...

    def frequency(self, number: int) -> int:
        """Return how many documents have a term."""
        ...

    def posting(self, number: int) -> TermPosting:
        """Return the documents of a term."""
        ...

    def positions(self, number: int) -> U32:
        """Return the positions of a term in its documents, one after the other."""
        ...


class StoredPartition:
    """A partition in the files of an index; what is read is cached."""

    def __init__(self, folder: SegmentFolder, number: int, layout: TextLayout) -> None:
        self._folder, self._number, self._layout = folder, number, layout
        self._path = folder.file(names.postings_file(number)).path
        self.key = f"{folder.place.uri}/{number}"

    @cached_property
    def _file(self) -> IndexFileReader:
        file = self._folder.open(names.postings_file(self._number))
        file.require(names.POSTING, names.LENGTH)
        return file

    @cached_property
    def _postings_layout(self) -> TextLayout:
        return names.postings_layout(self._layout, self._file.metadata, self._path)

    @property
    def documents(self) -> Documents:
        """The documents, in the order of their numbers."""
        return cache.kept(self.key, "documents", self._read_documents, lambda found: found.nbytes)

    def _read_documents(self) -> Documents:
        file = self._folder.open(names.documents_file(self._number))
        file.require(names.ROW_ID, names.NUM_TOKENS)
        table = file.read(columns=[names.ROW_ID, names.NUM_TOKENS])
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
        name = names.tokens_file(self._number)
        file = self._folder.open(name)
        what = f"index file {self._folder.file(name).path}"
        if self._layout.token_format == names.FST_TOKENS:
            file.require(names.TOKEN_FST)
            data = file.read(0, 1, columns=[names.TOKEN_FST]).column(0)
            if len(data) != 1:
                raise CorruptTableError(f"{what} has no term dictionary")
            return TransducedTerms(Transducer(data[0].as_py(), what))
        file.require(names.TOKEN, names.TOKEN_ID)
        table = file.read(columns=[names.TOKEN, names.TOKEN_ID])
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
            column = self._file.read(columns=[names.LENGTH]).column(0)
            return np.asarray(column, dtype=np.uint32)

        return cache.kept(self.key, "lengths", read, lambda found: int(found.nbytes))

    def _row(self, number: int) -> int:
        if number >= self._file.num_rows:
            problem = f"index file {self._path} has no posting list {number}"
            raise CorruptTableError(problem, path=self._path)
        return number

    def posting(self, number: int) -> TermPosting:
        """Return the documents of a term."""
        row = self._row(number)
        return cache.kept(
            self.key, ("posting", number), lambda: self._read(row), lambda found: found.nbytes
        )

    def _read(self, row: int) -> TermPosting:
        table = self._file.take([row], columns=[names.POSTING, names.LENGTH])
        (lists,) = self._decoded(table)
        return TermPosting(lists.documents, lists.frequencies)

    def _decoded(self, table: pa.Table) -> Iterator[postings.PostingLists]:
        for batch in table.combine_chunks().to_batches():
            lengths = np.asarray(batch.column(1)).astype(np.int64)
            what = f"index file {self._path}"
            if len(lengths) and int(lengths.max()) > len(self.documents):
                problem = f"{what} has a list of more documents than exist"
                raise CorruptTableError(problem, path=self._path)
            layout = self._postings_layout
            found = postings.decode(batch.column(0), lengths, layout.tail, what, layout.block_docs)
            if len(found.documents) and int(found.documents.max()) >= len(self.documents):
                problem = f"{what} refers to documents that do not exist"
                raise CorruptTableError(problem, path=self._path)
            yield found

    def positions(self, number: int) -> U32:
        """Return the positions of a term in its documents."""
        row = self._row(number)
        return cache.kept(
            self.key,
            ("positions", number),
            lambda: self._read_positions(row),
            lambda found: int(found.nbytes),
        )

    def prewarm(self) -> None:
        """Read what each search needs."""
        _ = self.documents, self.terms, self._lengths

    def _read_positions(self, row: int) -> U32:
        table = self._file.take([row], columns=self._position_columns())
        return self._decoded_positions(table, [self.posting(row).frequencies])

    def _position_columns(self) -> list[str]:
        """Return the columns of positions; raise if there are none."""
        if self._postings_layout.shared_positions is not None:
            columns = [names.SHARED_POSITIONS, names.POSITION_OFFSETS]
            self._file.require(*columns)
            return columns
        if names.POSITION not in self._file.schema.names:
            raise missing_positions()
        return [names.POSITION]

    def _decoded_positions(self, table: pa.Table, frequencies: Sequence[U32]) -> U32:
        """Decode the positions of some posting lists with the frequencies of each."""
        what = f"index file {self._path}"
        codec = self._postings_layout.shared_positions
        none = np.zeros(0, np.uint32)
        if codec is None:
            lists = pa.concat_arrays(table.column(0).chunks)
            return positions.decode(lists, np.concatenate([none, *frequencies]), what)
        streams, offsets = table.column(0).to_pylist(), table.column(1).to_pylist()
        block = self._postings_layout.block_docs
        found = [
            positions.decode_shared(stream, np.array(bounds, np.int64), counts, codec, what, block)
            for stream, bounds, counts in zip(streams, offsets, frequencies, strict=True)
        ]
        return np.concatenate([none, *found])

    def lists(
        self, *, with_position: bool
    ) -> Iterator[tuple[int, postings.PostingLists, U32 | None]]:
        """Yield all posting lists, several at once: number of the first, lists, positions."""
        for start in range(0, self._file.num_rows, _LISTS_AT_ONCE):
            stop = min(start + _LISTS_AT_ONCE, self._file.num_rows)
            table = self._file.read(start, stop, columns=[names.POSTING, names.LENGTH])
            (found,) = self._decoded(table)
            places = None
            if with_position:
                placed = self._file.read(start, stop, columns=self._position_columns())
                each = np.split(found.frequencies, found.ends[:-1])
                places = self._decoded_positions(placed, each)
            yield start, found, places
