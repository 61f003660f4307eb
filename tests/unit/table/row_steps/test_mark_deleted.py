from __future__ import annotations

import pytest
from pyroaring import BitMap

import lancelake.pylance as lance
from lancelake.commit.snapshot import Snapshot
from lancelake.data.fragment_reader import load_deletions
from lancelake.errors import InvalidRequestError
from lancelake.format.ids import FragmentId
from lancelake.table.row_steps import mark_deleted, mark_deleted_during


def test_rows_join_those_that_were_deleted_before(base: Snapshot) -> None:
    gone = mark_deleted(base, {FragmentId(0): BitMap([0])})
    assert list(load_deletions(base.files, gone.updated[0])) == [0, 2]
    assert len(gone.affected) == 1
    assert gone.removed == ()


def test_a_fragment_without_rows_left_is_removed(base: Snapshot) -> None:
    gone = mark_deleted(base, {FragmentId(0): BitMap([0, 1, 3]), FragmentId(2): BitMap([1])})
    assert gone.removed == (0,)
    assert [fragment.id for fragment in gone.updated] == [2]
    assert sorted(gone.affected) == [0, 2]


def test_the_rows_that_go_are_named_for_the_rebase(base: Snapshot) -> None:
    gone = mark_deleted(base, {FragmentId(1): BitMap([2, 3])})
    assert list(BitMap.deserialize(gone.affected[FragmentId(1)])) == [2, 3]


def test_nothing_is_written_for_no_rows(dataset: lance.LanceDataset, base: Snapshot) -> None:
    gone = mark_deleted(base, {})
    assert (gone.updated, gone.removed, gone.affected) == ((), (), {})


def test_a_fragment_of_another_version_is_refused(base: Snapshot) -> None:
    with pytest.raises(InvalidRequestError, match="fragment 7 is not part of version 2"):
        mark_deleted(base, {FragmentId(7): BitMap([0])})


def test_an_error_of_the_work_beside_is_raised(base: Snapshot) -> None:
    def work() -> None:
        raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        mark_deleted_during(base, {FragmentId(1): BitMap([0])}, work)


def test_both_results_come_back(base: Snapshot) -> None:
    gone, done = mark_deleted_during(base, {FragmentId(1): BitMap([0])}, lambda: "done")
    assert (sorted(gone.affected), done) == ([1], "done")
