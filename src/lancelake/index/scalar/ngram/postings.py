"""Postings of an n-gram index: the rows of each trigram, collected, merged and written in order.

Collected pairs are sorted and spilled to disk when they exceed the memory limit, and merged at the
end.
"""

from __future__ import annotations

import heapq
import itertools
import operator
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lancelake.data.codec import spool
from lancelake.data.codec.index_file import SegmentFolder
from lancelake.errors import CorruptTableError
from lancelake.format import roaring_treemap
from lancelake.format.index_meta import IndexFile
from lancelake.index.kind import ROW_ID, VALUE
from lancelake.index.row_ids import RowIds, U64Array, union
from lancelake.index.scalar.ngram.trigrams import U32, Trigrams, trigrams_of

FILE = "ngram_postings.lance"
TOKENS, POSTINGS = "tokens", "posting_list"
NULL_TOKEN = 0
"""Token of rows with a null text."""

_SCHEMA = pa.schema(
    [pa.field(TOKENS, pa.uint32()), pa.field(POSTINGS, pa.binary(), nullable=False)]
)
# Most pairs of a trigram and a row in memory: six bytes each, twelve more for sorting.
PAIRS_AT_ONCE = 16 << 20
_BYTES_AT_ONCE = 4 << 20
_ROWS_AT_ONCE = 4096


class Posting(NamedTuple):
    """The rows of a trigram."""

    token: int
    rows: RowIds


def gathered(batches: Iterable[pa.RecordBatch], pairs_at_once: int) -> list[Iterator[Posting]]:
    """Return the postings of rows, as sorted streams."""
    runs: list[Iterator[Posting]] = []
    pending = _Pending()
    for batch in batches:
        for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
            pending.add(batch.slice(start, _ROWS_AT_ONCE))
            if pending.pairs >= pairs_at_once:
                runs.append(_put_aside(pending.postings()))
                pending = _Pending()
    return [*runs, pending.postings()]


class _Pending:
    """Pairs of a trigram and a row, in memory."""

    def __init__(self) -> None:
        self.pairs = 0
        self._tokens: list[U32] = []
        self._places: list[U32] = []
        self._ids: list[U64Array] = []
        self._rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add the trigrams of texts, and the rows with a null text."""
        texts, ids = batch.column(VALUE), np.asarray(batch.column(ROW_ID), dtype=np.uint64)
        nulls = np.flatnonzero(np.asarray(texts.is_null()))
        self._take(Trigrams(np.full(len(nulls), NULL_TOKEN, dtype=np.uint32), nulls))
        for found in trigrams_of(texts):
            self._take(found)
        self._ids.append(ids)
        self._rows += len(ids)

    def _take(self, found: Trigrams) -> None:
        self._tokens.append(found.tokens)
        self._places.append((found.rows + self._rows).astype(np.uint32))
        self.pairs += len(found.tokens)

    def postings(self) -> Iterator[Posting]:
        """Yield the rows of each trigram, in order."""
        if not self.pairs:
            return
        tokens, places = np.concatenate(self._tokens), np.concatenate(self._places)
        ids = np.concatenate(self._ids)
        self._tokens, self._places = [], []
        # NumPy sorts 16-bit numbers by radix; only trigrams of folded capitals need more bits.
        short = tokens.astype(np.uint16) if tokens.max() < 1 << 16 else tokens
        order = np.argsort(short, kind="stable")
        tokens, places = tokens[order], places[order]
        starts = np.flatnonzero(np.concatenate([[True], tokens[1:] != tokens[:-1]]))
        for start, end in itertools.pairwise([*starts.tolist(), len(tokens)]):
            # A repeated trigram of a text yields its row twice; the set of rows removes duplicates.
            yield Posting(int(tokens[start]), RowIds.of(ids[places[start:end]]))


def merged(streams: Sequence[Iterable[Posting]]) -> Iterator[Posting]:
    """Yield the rows of each trigram in sorted streams."""
    by_token = operator.attrgetter("token")
    whole = heapq.merge(*streams, key=by_token)
    for token, found in itertools.groupby(whole, key=by_token):
        parts = [posting.rows for posting in found]
        rows = parts[0] if len(parts) == 1 else union(parts)
        if rows:
            yield Posting(token, rows)


def write(postings: Iterable[Posting], folder: SegmentFolder) -> IndexFile:
    """Write the file of a segment."""
    writer = folder.create(FILE, _SCHEMA)
    for batch in _batches(postings):
        writer.write(batch)
    return writer.finish()


def decoded(data: bytes, path: str) -> RowIds:
    """Read the rows of a trigram."""
    return RowIds.within(roaring_treemap.decode(data, what=f"a posting list of index file {path}"))


def read(batches: Iterable[pa.RecordBatch], path: str) -> Iterator[Posting]:
    """Yield the postings of a file, which must be sorted."""
    before = -1
    for batch in batches:
        tokens, lists = batch.column(TOKENS).to_pylist(), batch.column(POSTINGS)
        for token, data in zip(tokens, lists, strict=True):
            if token is None or token <= before:
                raise CorruptTableError(f"index file {path} is not sorted", path=path)
            before = token
            yield Posting(token, decoded(data.as_py(), path))


def _batches(postings: Iterable[Posting]) -> Iterator[pa.RecordBatch]:
    tokens: list[int] = []
    lists: list[bytes] = []
    size = 0
    for posting in postings:
        tokens.append(posting.token)
        lists.append(roaring_treemap.encode(posting.rows.parts))
        size += len(lists[-1])
        if size >= _BYTES_AT_ONCE or len(tokens) >= _ROWS_AT_ONCE:
            yield _batch(tokens, lists)
            tokens, lists, size = [], [], 0
    if tokens:
        yield _batch(tokens, lists)


def _batch(tokens: list[int], lists: list[bytes]) -> pa.RecordBatch:
    columns = [pa.array(tokens, pa.uint32()), pa.array(lists, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


def _put_aside(postings: Iterator[Posting]) -> Iterator[Posting]:
    """Spill postings to a local file, and return a stream that reads them back."""
    path = spool.fresh_path()
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, _SCHEMA) as writer:
        for batch in _batches(postings):
            writer.write_batch(batch)
    return _fetched(path)


def _fetched(path: Path) -> Iterator[Posting]:
    try:
        with pa.OSFile(str(path)) as source, pa.ipc.open_stream(source) as reader:
            yield from read(reader, str(path))
    finally:
        path.unlink(missing_ok=True)
