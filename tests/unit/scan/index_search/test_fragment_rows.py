"""Rows to read of each fragment, out of bounds of the rows that match."""

from __future__ import annotations

from pyroaring import BitMap

from lancelake.index.row_sets import EMPTY, UNKNOWN, Answer, RowIds
from lancelake.scan.index_search.search import FragmentSelection

FRAGMENTS = BitMap([1, 2])


def ids(**parts: list[int]) -> RowIds:
    return RowIds.within({int(name[1:]): BitMap(rows) for name, rows in parts.items()})


def found(answer: Answer) -> tuple[dict[int, tuple[list[int], bool]], list[int]]:
    result = FragmentSelection()
    result.add(answer, FRAGMENTS, lambda _: 4)
    rows = {i: (list(f.rows), f.is_exact) for i, f in result.by_fragment.items()}
    return rows, list(result.empty)


def test_known_rows_are_exact() -> None:
    assert found(Answer.exact(ids(f1=[0, 3]))) == ({1: ([0, 3], True)}, [2])


def test_excluded_rows_leave_the_others() -> None:
    answer = ~Answer.exact(ids(f1=[0, 3]), ids(f2=[0, 1, 2, 3]))
    assert found(answer) == ({1: ([1, 2], True)}, [2])


def test_without_excluded_rows_all_match() -> None:
    assert found(~Answer.exact(EMPTY)) == ({1: ([0, 1, 2, 3], True), 2: ([0, 1, 2, 3], True)}, [])


def test_candidates_are_checked_unless_they_are_most_rows() -> None:
    assert found(Answer.at_most(ids(f1=[1, 2], f2=[0, 1, 2]))) == ({1: ([1, 2], False)}, [])


def test_fragment_in_which_both_bounds_agree_is_exact() -> None:
    answer = Answer.exact(ids(f1=[0], f2=[1])) | Answer.at_most(ids(f2=[3]))
    assert found(answer) == ({1: ([0], True), 2: ([1, 3], False)}, [])


def test_unknown_rows_are_all_read() -> None:
    assert found(UNKNOWN) == ({}, [])
