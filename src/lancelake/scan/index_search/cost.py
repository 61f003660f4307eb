"""Cost of index searches, and the decision whether a scan is cheaper."""

from __future__ import annotations

from collections.abc import Sequence

from lancelake.index.kind import RangeSegment
from lancelake.scan.index_search.questions import Question
from lancelake.scan.index_search.sources import IndexSource, named_failures

# Fewer rows are read out of an index in no time.
_FEW_READ = 1 << 16
# Reading more than this share of an index takes as long as reading the column.
_MOST_SHARE = 0.25
# So many candidates are checked faster than a costly question is answered.
FEW_CANDIDATES = 1000


def rows_read(sources: Sequence[IndexSource], question: Question) -> int:
    """Estimate how many entries of indices are read to answer a question; 0 for few."""
    return sum(_rows_read(source, question)[0] for source in sources)


def is_worth_asking(source: IndexSource, question: Question) -> bool:
    """Whether a segment answers faster than its column is read."""
    rows, share = _rows_read(source, question)
    return not rows or share <= _MOST_SHARE


def _rows_read(source: IndexSource, question: Question) -> tuple[int, float]:
    segment = source.segment
    if question.wanted is None or not isinstance(segment, RangeSegment):
        return 0, 0.0
    with named_failures(source.index):
        share = segment.share_read(question.wanted)
        rows = int(share * segment.num_rows())
    return (rows, share) if rows > _FEW_READ else (0, share)
