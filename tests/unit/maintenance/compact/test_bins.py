"""Fragments that are rewritten together."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lancelake.format.fragment import Fragment
from lancelake.format.ids import FragmentId
from lancelake.maintenance.compact.options import CompactionSettings
from lancelake.maintenance.compact.plan import CompactionCandidate, bins
from lancelake.scan.request import Ordering

SMALL = CompactionSettings(target_rows_per_fragment=100)
MB = 1 << 20


def candidate(number: int, rows: int, *, deleted: int = 0, size: int = 0) -> CompactionCandidate:
    fragment = Fragment(id=FragmentId(number), files=(), physical_rows=rows)
    return CompactionCandidate(
        fragment=fragment, physical_rows=rows, live_rows=rows - deleted, size_bytes=size
    )


def table(*rows: int) -> list[CompactionCandidate]:
    return [candidate(number, count) for number, count in enumerate(rows)]


def chosen(
    candidates: list[CompactionCandidate], options: CompactionSettings = SMALL
) -> list[list[int]]:
    return [[c.fragment.id for c in part] for part in bins(candidates, options)]


def test_small_neighbours_come_together() -> None:
    assert chosen(table(10, 20, 30)) == [[0, 1, 2]]


def test_a_small_fragment_between_full_ones_stays() -> None:
    assert chosen(table(100, 10, 100)) == []


def test_full_fragments_are_not_touched() -> None:
    assert chosen(table(100, 200, 10, 10)) == [[2, 3]]


def test_a_run_is_cut_where_a_fragment_is_full_if_the_rest_fills_another() -> None:
    assert chosen(table(*[25] * 9)) == [[0, 1, 2, 3], [4, 5, 6, 7, 8]]


def test_deleted_rows_above_the_threshold_make_a_fragment_be_rewritten_alone() -> None:
    fragments = [candidate(0, 200, deleted=20), candidate(1, 200, deleted=21)]
    assert chosen(fragments) == [[1]]


def test_deleted_rows_stay_where_they_are_not_to_be_materialised() -> None:
    options = replace(SMALL, materialize_deletions=False)
    assert chosen([candidate(0, 200, deleted=150)], options) == []


def test_fragments_that_other_indices_cover_do_not_come_together() -> None:
    indexed = [replace(c, covered_by=frozenset({0})) for c in table(10, 10)]
    plain = [candidate(2, 10), candidate(3, 10)]
    assert chosen([*indexed, *plain]) == [[0, 1], [2, 3]]


def test_excluded_fragments_are_boundaries() -> None:
    options = replace(SMALL, excluded_fragment_ids=frozenset({FragmentId(2)}))
    assert chosen(table(10, 10, 10, 10, 10), options) == [[0, 1], [3, 4]]


def test_sources_stay_within_what_one_run_may_read() -> None:
    fragments = table(*[50] * 6)
    assert chosen(fragments, replace(SMALL, max_source_fragments=5)) == [[0, 1], [2, 3]]
    assert chosen(fragments, replace(SMALL, max_source_rows=199)) == [[0, 1]]
    assert chosen(fragments, replace(SMALL, max_source_fragments=1)) == []


def test_a_fragment_of_enough_bytes_is_full_however_few_rows_it_has() -> None:
    options = replace(SMALL, target_bytes_per_fragment=100)
    fragments = [candidate(0, 10, size=80), candidate(1, 10, size=20), candidate(2, 10, size=20)]
    assert chosen(fragments, options) == [[1, 2]]


def test_groups_end_at_enough_bytes() -> None:
    options = replace(SMALL, target_bytes_per_fragment=100)
    assert chosen([candidate(n, 1, size=50) for n in range(4)], options) == [[0, 1], [2, 3]]


def test_a_large_fragment_waits_until_its_neighbours_are_worth_it() -> None:
    large = candidate(0, 80, size=90 * MB)
    few = [candidate(1, 5), candidate(2, 5)]
    assert chosen([large, *few]) == [[1, 2]]
    assert chosen([large, *few, candidate(3, 10)]) == [[0, 1, 2, 3]]


def test_a_small_table_is_merged_although_one_fragment_is_much_larger() -> None:
    assert chosen([candidate(0, 80, size=MB), candidate(1, 1)]) == [[0, 1]]


def test_everything_is_sorted_together() -> None:
    options = replace(SMALL, sort_by=(Ordering(column="a"),))
    assert chosen(table(100, 300, 5), options) == [[0, 1, 2]]


FRAGMENTS = st.lists(
    st.tuples(st.integers(1, 150), st.integers(0, 100), st.integers(0, 200 * MB)), max_size=30
)


@given(FRAGMENTS)
def test_groups_are_neighbours_in_order_and_no_fragment_is_in_two(
    drawn: list[tuple[int, int, int]],
) -> None:
    found = chosen(_drawn(drawn))
    flat = [number for part in found for number in part]
    assert flat == sorted(set(flat))
    assert all(part == list(range(part[0], part[-1] + 1)) for part in found)


@given(FRAGMENTS)
def test_what_was_compacted_is_not_compacted_again(drawn: list[tuple[int, int, int]]) -> None:
    fragments = _drawn(drawn)
    found = bins(fragments, SMALL)
    merged = {part[0].fragment.id: part for part in found}
    gone = {c.fragment.id for part in found for c in part}
    kept = [c for c in fragments if c.fragment.id not in gone]
    # Rewritten fragments have higher ids, so they come last.
    new = [_merged(1000 + n, part) for n, part in enumerate(merged.values())]
    full = [c for c in [*kept, *new] if c.live_rows >= SMALL.target_rows_per_fragment]
    again = {c.fragment.id for part in bins([*kept, *new], SMALL) for c in part}
    assert not again & {c.fragment.id for c in full if c.deleted_share <= 0.1}


def _drawn(drawn: list[tuple[int, int, int]]) -> list[CompactionCandidate]:
    return [
        candidate(number, rows, deleted=rows * share // 200, size=size)
        for number, (rows, share, size) in enumerate(drawn)
    ]


def _merged(number: int, part: tuple[CompactionCandidate, ...]) -> CompactionCandidate:
    rows = sum(c.live_rows for c in part)
    return candidate(number, max(1, rows), size=sum(c.size_bytes for c in part))
