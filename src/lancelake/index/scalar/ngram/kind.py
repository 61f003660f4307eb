"""Index kind NGRAM: finds texts that contain a substring by their trigrams."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, assert_never

import numpy as np
import pyarrow as pa

from lancelake.data.codec.index_file import IndexFileReader, SegmentFolder
from lancelake.expr.condition import Leaf
from lancelake.expr.literals import is_text
from lancelake.expr.need import AllOf, AnyOf, Contains, Need
from lancelake.expr.text_need import need_of
from lancelake.format.index_meta import IndexDetails
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
from lancelake.index.row_ids import EMPTY, RowIds, union
from lancelake.index.scalar import parameters
from lancelake.index.scalar.ngram import postings
from lancelake.index.scalar.ngram.postings import FILE, POSTINGS, TOKENS, Posting
from lancelake.index.scalar.ngram.trigrams import required_by

_DETAILS = IndexDetails(type_url="/lance.table.NGramIndexDetails", value=b"")
_LISTS_AT_ONCE = 64


class _NGram:
    """The kind."""

    name = "NGRAM"
    details_type = "ngramindexdetails"
    max_version = 0
    order = Order.ROW

    def accepts(self, dtype: pa.DataType) -> bool:
        """Whether columns of a type can be indexed: strings only."""
        return is_text(dtype)

    def stored_ids(self, index_version: int, *, has_stable_row_ids: bool) -> IdKind:
        """Return the kind of ids in a segment: stable row ids if the table has them."""
        return IdKind.STABLE_ID if has_stable_row_ids else IdKind.ADDRESS

    def build(self, rows: BuildInput, folder: SegmentFolder) -> BuiltSegment:
        """Write the postings of rows."""
        return self.merge((), rows, folder)

    def open(self, facts: SegmentFacts) -> _Segment:
        """Open a segment."""
        return _Segment(facts)

    def merge(
        self,
        segments: Sequence[tuple[SegmentFacts, RowIds | None]],
        rows: BuildInput,
        folder: SegmentFolder,
    ) -> BuiltSegment:
        """Write the postings of kept rows of segments and of new rows."""
        parameters.ensure_known(self.name, rows.parameters, ())
        olds = [_kept(_Segment(facts).postings(), keep) for facts, keep in segments]
        new = postings.gathered(rows.batches, postings.PAIRS_AT_ONCE)
        return _written(postings.merged([*olds, *new]), folder)

    def remap(
        self, facts: SegmentFacts, row_map: RowMap, folder: SegmentFolder
    ) -> BuiltSegment | None:
        """Write a segment with the new ids of its rows."""
        return _written(_remapped(_Segment(facts).postings(), row_map), folder)


def _written(found: Iterable[Posting], folder: SegmentFolder) -> BuiltSegment:
    entry = postings.write(found, folder)
    return BuiltSegment(details=_DETAILS, index_version=0, files=(entry,))


def _kept(found: Iterable[Posting], keep: RowIds | None) -> Iterator[Posting]:
    for posting in found:
        yield posting if keep is None else Posting(posting.token, posting.rows & keep)


def _remapped(found: Iterable[Posting], row_map: RowMap) -> Iterator[Posting]:
    for posting in found:
        ids = row_map(posting.rows.to_array())
        rows = RowIds.of(ids[ids != np.uint64(DROPPED)])
        if rows:
            yield Posting(posting.token, rows)


class _Segment:
    """A segment that can be searched."""

    def __init__(self, facts: SegmentFacts) -> None:
        self._facts = facts
        self._path = facts.folder.file(FILE).path

    @functools.cached_property
    def _file(self) -> IndexFileReader:
        file = self._facts.folder.open(FILE)
        file.require(TOKENS, POSTINGS)
        return file

    @functools.cached_property
    def _places(self) -> dict[int, int]:
        """The row of the file that has a trigram."""
        tokens = self._file.read(columns=[TOKENS]).column(0).to_pylist()
        return {token: place for place, token in enumerate(tokens)}

    def answer(self, leaf: Leaf) -> Answer | None:
        """Answer a condition that requires certain trigrams."""
        rows = self._meeting(need_of(leaf, self._facts.dtype))
        return None if rows is None else Answer.at_most(rows)

    def _meeting(self, need: Need) -> RowIds | None:
        """Return the rows that may meet a need; None if trigrams cannot decide it."""
        match need:
            case Contains():
                return self._containing(need.text)
            case AllOf():
                found = [self._meeting(part) for part in need.parts]
                known = [rows for rows in found if rows is not None]
                return functools.reduce(RowIds.__and__, known) if known else None
            case AnyOf():
                each = [self._meeting(part) for part in need.parts]
                known = [rows for rows in each if rows is not None]
                return union(known) if len(known) == len(each) else None
            case _:
                assert_never(need)

    def _containing(self, text: str) -> RowIds | None:
        tokens = required_by(text)
        if not tokens:
            return None
        places = [self._places.get(token) for token in tokens]
        known = sorted(place for place in places if place is not None)
        if len(known) < len(places):
            return EMPTY
        lists = self._file.take(known, columns=[POSTINGS]).column(0)
        found = [postings.decoded(data.as_py(), self._path) for data in lists]
        return functools.reduce(RowIds.__and__, sorted(found, key=len))

    def postings(self) -> Iterator[Posting]:
        """Stream the rows of each trigram."""
        return postings.read(self.entries(), self._path)

    def entries(self) -> Iterator[pa.RecordBatch]:
        """Stream trigrams and their rows, in order."""
        yield from self._file.batches(batch_rows=_LISTS_AT_ONCE)

    def statistics(self) -> Mapping[str, Any]:
        """Return the number of trigrams."""
        return {"num_ngrams": len(self._places)}

    def parameters(self) -> Parameters:
        """Return no parameter: the kind has none."""
        return {}


NGRAM: IndexKind = _NGram()
