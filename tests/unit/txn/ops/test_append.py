from __future__ import annotations

from dataclasses import replace

import pytest

from lancelake.errors import InvalidRequestError
from lancelake.format import operations as ops
from lancelake.format.ids import FragmentId
from lancelake.txn import examples
from lancelake.txn.rules import OK, Retryable
from tests.unit.txn.making import after, fragment_ids, ids, row_id_list, table, verdict, versions

NEW = examples.fragment(FragmentId(0), path="new.lance")
APPEND = ops.Append(
    fragments=(NEW, replace(NEW, files=(examples.data_file("b.lance", (examples.KEY,)),)))
)


def test_new_fragments_get_the_next_ids() -> None:
    assert fragment_ids(after(APPEND)) == [0, 1, 2, 3]


def test_an_id_that_was_chosen_is_kept() -> None:
    state = after(ops.Append(fragments=(replace(NEW, id=FragmentId(42)),)))
    assert (fragment_ids(state), state.manifest.max_fragment_id) == ([0, 1, 42], 42)


def test_an_id_that_is_taken_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="fragment 1 appears twice"):
        after(ops.Append(fragments=(replace(NEW, id=FragmentId(1)),)))


def test_rows_get_the_next_row_ids_and_this_version() -> None:
    state = after(APPEND, table(stable=True))
    new = state.manifest.fragments[2]
    assert row_id_list(new) == list(range(20, 30))
    assert versions(new.created_at_versions, 10) == [2] * 10
    assert versions(new.last_updated_at_versions, 10) == [2] * 10
    assert state.manifest.next_row_id == 40


def test_rows_have_no_row_ids_where_they_are_not_stable() -> None:
    assert after(APPEND).manifest.fragments[2].row_ids is None


def test_indices_do_not_cover_new_fragments() -> None:
    index = examples.index("i", examples.VALUE, FragmentId(0))
    assert after(APPEND, table(indices=(index,))).indices == (index,)


def test_rows_are_written_again_when_their_column_was_cast() -> None:
    cast = examples.shapes()[ops.Merge][2].operation
    assert isinstance(verdict(ops.Append(fragments=(NEW,)), cast), Retryable)


def test_rows_go_with_an_added_column_that_may_be_null() -> None:
    added = examples.shapes()[ops.Merge][1].operation
    assert verdict(APPEND, added) == OK


def test_rows_cannot_come_with_ids_that_are_taken() -> None:
    op = ops.Append(fragments=(replace(NEW, row_ids=ids([3])),))
    with pytest.raises(InvalidRequestError, match="row id 3 is taken"):
        after(op, table(stable=True))
