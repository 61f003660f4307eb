"""Answers of segments as row addresses of the version, whatever ids the segments store."""

from __future__ import annotations

from functools import reduce

import numpy as np
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.format import roaring
from lancelake.format.fragment_list import FragmentList
from lancelake.format.ids import FragmentId
from lancelake.index.answer import UNKNOWN, Answer
from lancelake.index.kind import IdKind, RangeSegment
from lancelake.index.row_ids import EMPTY, RowIds
from lancelake.scan.index_search.questions import Question
from lancelake.scan.index_search.row_places import row_places
from lancelake.scan.index_search.sources import IndexSource, named_failures
from lancelake.scan.index_search.updated_rows import uncertain_rows


def answer(snapshot: Snapshot, source: IndexSource, question: Question) -> Answer | None:
    """Return what a segment knows about the rows of the fragments that it covers.

    None if the segment does not serve the question. Deleted rows may be among those found.
    """
    with named_failures(source.index):
        found = _asked(source, question)
    if found is None:
        return None
    coverage = source.coverage
    if coverage.stored is IdKind.ADDRESS:
        return coverage.current(found)
    placed = found.mapped(lambda ids: _places(snapshot, coverage.fragments, ids))
    return placed.doubting(uncertain_rows(snapshot, source.segment, coverage))


def _asked(source: IndexSource, question: Question) -> Answer | None:
    segment = source.segment
    if question.wanted is not None and isinstance(segment, RangeSegment):
        return segment.answer_range(question.wanted)
    answers = [segment.answer(leaf) for leaf in question.leaves]
    known = [each for each in answers if each is not None]
    if not known:
        return None
    together = reduce(Answer.__and__, known)
    return together if len(known) == len(answers) else together & UNKNOWN


def _places(snapshot: Snapshot, fragments: BitMap, ids: RowIds) -> RowIds:
    """Return the addresses of rows with stable ids that are in some fragments.

    A row that was moved has left its id behind on a deleted row, which is found, too.
    """
    if not ids:
        return EMPTY
    wanted = ids.to_array()
    by_id = FragmentList.of(snapshot.manifest.fragments).by_id()
    parts: dict[int, BitMap] = {}
    for number in fragments:
        offsets = row_places(snapshot, by_id[FragmentId(number)]).find(wanted)
        if len(offsets):
            parts[number] = roaring.of(offsets.astype(np.uint32))
    return RowIds(parts)
