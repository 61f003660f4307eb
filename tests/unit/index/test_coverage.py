"""Segments answer for fragments that they know, and for no others."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from pyroaring import BitMap

from lancelake.errors import UnsupportedError
from lancelake.format.ids import FieldId, Version
from lancelake.format.index_meta import IndexDetails, IndexMetadata
from lancelake.index.kind import IdKind
from lancelake.index.kinds import kind_of
from lancelake.index.row_sets import ALL_ROWS, Answer, RowIds, RowMask
from lancelake.index.scalar.ngram import NGRAM
from lancelake.index.scalar.zone_map import ZONE_MAP
from lancelake.index.stored_segment import Coverage, IndexedVersion
from tests.unit.index.test_fragment_reuse import group, ids, recorded

ENTRY = IndexMetadata(
    uuid=UUID(int=7),
    name="z",
    fields=(FieldId(0),),
    dataset_version=Version(1),
    fragment_bitmap=bytes(BitMap([0, 1, 2]).serialize()),
    details=IndexDetails(type_url="/lance.table.ZoneMapIndexDetails", value=b""),
    index_version=0,
)
PLAIN = IndexedVersion(indices=(ENTRY,), fragments=BitMap([0, 2, 3]), has_stable_row_ids=False)


class Segment:
    """A segment with entries of some fragments."""

    def __init__(self, *fragments: int) -> None:
        self._fragments = BitMap(fragments)

    def fragments(self) -> BitMap:
        return self._fragments


def rows(*found: tuple[int, int]) -> RowIds:
    return RowIds.of(ids(list(found)))


def covered(version: IndexedVersion, entry: IndexMetadata = ENTRY) -> Coverage:
    found = version.coverage(entry, ZONE_MAP)
    assert found is not None
    return found


def test_fragments_that_are_gone_are_not_covered() -> None:
    assert covered(PLAIN).fragments == BitMap([0, 2])


def test_an_entry_that_does_not_say_is_not_used() -> None:
    assert PLAIN.coverage(replace(ENTRY, fragment_bitmap=b""), ZONE_MAP) is None


@pytest.mark.parametrize(
    "entry",
    [
        replace(ENTRY, details=None),
        replace(ENTRY, index_version=1),
        replace(ENTRY, details=IndexDetails(type_url="/lance.x.FutureDetails", value=b"")),
    ],
    ids=["no details", "newer", "unknown"],
)
def test_unknown_kinds_are_left_alone(entry: IndexMetadata) -> None:
    assert kind_of(entry) is None


def test_kinds_are_known_by_the_last_part_of_their_type() -> None:
    url = "type.googleapis.com/LANCE.TABLE.zonemapindexdetails"
    entry = replace(ENTRY, details=IndexDetails(type_url=url, value=b""))
    assert kind_of(entry) is ZONE_MAP


def test_ids_of_other_fragments_are_ignored() -> None:
    answer = covered(PLAIN).current(
        Answer.exact(rows((0, 1), (1, 1), (3, 1)), rows((1, 2), (2, 2)))
    )
    assert answer.is_exact
    assert answer.maybe_true == RowMask(rows((0, 1)))
    assert answer.maybe_false == RowMask(rows((0, 1), (2, 2)), is_inverted=True)


def test_all_rows_stay_all_rows() -> None:
    answer = covered(PLAIN).current(Answer.at_most(rows((0, 1), (1, 1))))
    assert not answer.is_exact
    assert answer.maybe_true == RowMask(rows((0, 1)))
    assert answer.maybe_false == ALL_ROWS


def test_stable_row_ids_are_not_taken_for_addresses() -> None:
    version = replace(PLAIN, has_stable_row_ids=True)
    coverage = version.coverage(ENTRY, NGRAM)
    assert coverage is not None and coverage.stored is IdKind.STABLE_ID
    answer = Answer.exact(rows((9, 1)))
    assert coverage.current(answer) is answer


def test_fragments_without_a_zone_are_not_trusted() -> None:
    version = replace(PLAIN, has_stable_row_ids=True)
    assert covered(version).trusted(Segment(0, 1)).fragments == BitMap([0])


MOVED = IndexedVersion(
    indices=(ENTRY, *recorded([group([(0, 5), (1, 0)], [0, 1], [(4, 2)])])),
    fragments=BitMap([2, 3, 4]),
    has_stable_row_ids=False,
)


def test_coverage_and_ids_follow_moved_rows() -> None:
    coverage = covered(MOVED).trusted(Segment(0, 1, 2))
    assert coverage.fragments == BitMap([2, 4])
    answer = coverage.current(Answer.at_most(rows((0, 5), (0, 6), (2, 7))))
    assert answer.maybe_true == RowMask(rows((4, 0), (2, 7)))


def test_ids_follow_moved_rows_when_the_entry_was_advanced() -> None:
    entry = replace(ENTRY, fragment_bitmap=bytes(BitMap([2, 4]).serialize()))
    coverage = covered(MOVED, entry)
    assert coverage.fragments == BitMap([2, 4])
    assert coverage.current(Answer.at_most(rows((1, 0)))).maybe_true == RowMask(rows((4, 1)))


def test_moves_in_an_unknown_version_are_refused() -> None:
    version = replace(MOVED, indices=(ENTRY, *recorded([], version=3)))
    with pytest.raises(UnsupportedError, match="version 3"):
        version.coverage(ENTRY, ZONE_MAP)
