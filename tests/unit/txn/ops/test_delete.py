from __future__ import annotations

from dataclasses import replace

import pytest

from lancelake.errors import InvalidRequestError
from lancelake.format import operations as ops
from lancelake.format.fragment import Fragment
from lancelake.format.ids import FragmentId
from lancelake.format.operations import Transaction
from lancelake.txn import conflict_matrix
from lancelake.txn.conflict_matrix import FIRST, SECOND, without_rows
from lancelake.txn.rules import OK, REBASE, Retryable
from tests.unit.txn.making import after, fragment_ids, rebased, verdict


def delete(*updated: Fragment, gone: tuple[FragmentId, ...] = ()) -> ops.Delete:
    return ops.Delete(updated_fragments=updated, deleted_fragment_ids=gone, predicate="p")


def test_fragments_lose_rows_or_go() -> None:
    state = after(delete(without_rows(SECOND, 1), gone=(FIRST,)))
    assert fragment_ids(state) == [SECOND]
    assert state.manifest.fragments[0].live_rows == 9


def test_ids_of_removed_fragments_are_not_given_out_again() -> None:
    assert after(delete(gone=(SECOND,))).manifest.max_fragment_id == 1


def test_an_unknown_fragment_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="refers to fragment 7"):
        after(delete(gone=(FragmentId(7),)))


def test_files_of_columns_that_were_dropped_do_not_come_back() -> None:
    dropped = conflict_matrix.shapes()[ops.Project][0].operation
    head = after(dropped)
    numbers = conflict_matrix.data_file("0.lance", (conflict_matrix.KEY, conflict_matrix.VALUE))
    texts = conflict_matrix.data_file("text.lance", (conflict_matrix.TEXT,))
    stale = replace(without_rows(FIRST, 1), files=(numbers, texts))
    state = after(delete(stale), head)
    assert [f.path for f in state.manifest.fragments[0].files] == ["0.lance"]


def test_other_rows_of_the_same_fragment_can_be_rebased() -> None:
    mine = delete(without_rows(FIRST, 1))
    assert verdict(mine, delete(without_rows(FIRST, 2)), rows={FIRST: (1,)}) == REBASE


def test_unknown_rows_of_the_same_fragment_must_be_found_again() -> None:
    mine = delete(without_rows(FIRST, 1))
    assert isinstance(verdict(mine, delete(without_rows(FIRST, 2))), Retryable)


def test_rows_of_a_fragment_that_is_gone_must_be_found_again() -> None:
    mine = delete(without_rows(FIRST, 1))
    assert isinstance(verdict(mine, delete(gone=(FIRST,)), rows={FIRST: (1,)}), Retryable)


def test_rows_of_another_fragment_are_no_conflict() -> None:
    assert verdict(delete(without_rows(FIRST, 1)), delete(without_rows(SECOND, 1))) == OK


def test_rows_whose_columns_were_rewritten_must_be_found_again() -> None:
    column = conflict_matrix.data_file("v.lance", (conflict_matrix.VALUE,))
    others = conflict_matrix.data_file("0.lance", (conflict_matrix.KEY, conflict_matrix.TEXT))
    rewritten = replace(conflict_matrix.fragment(FIRST), files=(others, column))
    theirs = ops.Update(updated_fragments=(rewritten,), fields_modified=(conflict_matrix.VALUE,))
    mine = delete(without_rows(FIRST, 1))
    assert isinstance(verdict(mine, theirs, rows={FIRST: (1,)}), Retryable)


def test_a_rebase_unites_the_deleted_rows() -> None:
    head = after(delete(without_rows(FIRST, 2, 3)))
    outcome, port = rebased(delete(without_rows(FIRST, 1)), head, {FIRST: (1,)})
    assert isinstance(outcome, Transaction)
    assert isinstance(outcome.operation, ops.Delete)
    file = outcome.operation.updated_fragments[0].deletion_file
    assert file is not None
    assert set(port.stored[file.id]) == {1, 2, 3}
    assert (outcome.read_version, file.read_version) == (2, 2)


def test_a_rebase_removes_a_fragment_without_rows() -> None:
    head = after(delete(without_rows(FIRST, *range(1, 10))))
    outcome, _ = rebased(delete(without_rows(FIRST, 0)), head, {FIRST: (0,)})
    assert isinstance(outcome, Transaction)
    assert isinstance(outcome.operation, ops.Delete)
    assert outcome.operation.deleted_fragment_ids == (FIRST,)
    assert outcome.operation.updated_fragments == ()


def test_a_rebase_finds_the_row_that_both_deleted() -> None:
    head = after(delete(without_rows(FIRST, 1, 2)))
    outcome, _ = rebased(delete(without_rows(FIRST, 1)), head, {FIRST: (1,)})
    assert isinstance(outcome, Retryable)


def test_a_rebase_finds_rows_that_went_from_a_fragment_mine_removes() -> None:
    head = after(delete(without_rows(FIRST, 1)))
    outcome, _ = rebased(delete(gone=(FIRST,)), head, {FIRST: tuple(range(10))})
    assert isinstance(outcome, Retryable)
