"""Count of a range of values from an index alone, without sets of rows."""

from __future__ import annotations

import numpy as np
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.expr.condition import Condition
from lancelake.format import row_address
from lancelake.format.fragment_list import FragmentList
from lancelake.index.kind import CountableSegment, IdKind
from lancelake.index.row_ids import U64Array
from lancelake.scan.index_search import cost
from lancelake.scan.index_search.questions import Question, questions_of
from lancelake.scan.index_search.search import indexed_column
from lancelake.scan.index_search.sources import IndexSource, IndexSources, named_failures

# Counts by fragment are an array, indexed by fragment ids.
_GREATEST_ID = 1 << 20


def count_in_range(snapshot: Snapshot, condition: Condition) -> int | None:
    """Count the rows for which a condition is true; None if rows have to be looked at.

    That is possible if the condition is a range of an indexed column, no row is deleted, and one
    segment has exactly one entry for each row of the version.
    """
    fragments = FragmentList.of(snapshot.manifest.fragments)
    if not snapshot.indices or any(t.has_deletions for t in fragments.traits()):
        return None
    sources = IndexSources(snapshot)
    question = questions_of(condition, lambda leaf: indexed_column(snapshot, sources, leaf))
    if not isinstance(question, Question) or question.wanted is None:
        return None
    every = BitMap(fragments.ids)
    if not every or every.max() > _GREATEST_ID:
        return None
    for source in sources.of(question.column):
        segment = source.segment
        if not isinstance(segment, CountableSegment) or not _is_complete(source, every):
            continue
        with named_failures(source.index):
            if segment.num_entries() != fragments.live_rows():
                continue
            if not cost.is_worth_asking(source, question):
                return None
            ids = segment.ids_in_range(question.wanted)
        return _count_within(ids, every)
    return None


def _is_complete(source: IndexSource, fragments: BitMap) -> bool:
    """Whether a segment stores the current addresses of the rows of all fragments."""
    coverage = source.coverage
    is_current = coverage.stored is IdKind.ADDRESS and not coverage.moves
    return is_current and coverage.fragments == fragments


def _count_within(ids: U64Array, fragments: BitMap) -> int:
    """Count the addresses in some fragments; others are of rows that the version does not have."""
    places = row_address.fragment_of(ids)
    known = places[places <= fragments.max()].astype(np.int64)
    counts = np.bincount(known, minlength=fragments.max() + 1)
    return int(counts[list(fragments)].sum())
