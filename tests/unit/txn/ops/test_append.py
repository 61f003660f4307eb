from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lancelake.errors import InvalidRequestError
from lancelake.format import operations as ops
from lancelake.format.ids import FieldId, FragmentId
from lancelake.txn import conflict_matrix
from lancelake.txn.rules import OK, Retryable
from tests.unit.txn.making import (
    after,
    fragment_ids,
    ids,
    row_id_list,
    table,
    unseen,
    verdict,
    versions,
)

NEW = conflict_matrix.fragment(FragmentId(0), path="new.lance")
APPEND = ops.Append(
    fragments=(
        NEW,
        replace(NEW, files=(conflict_matrix.data_file("b.lance", (conflict_matrix.KEY,)),)),
    )
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
    index = conflict_matrix.index("i", conflict_matrix.VALUE, FragmentId(0))
    assert after(APPEND, table(indices=(index,))).indices == (index,)


def test_rows_are_written_again_when_their_column_was_cast() -> None:
    cast = conflict_matrix.shapes()[ops.Merge][2].operation
    assert isinstance(verdict(ops.Append(fragments=(NEW,)), cast), Retryable)


def test_rows_go_with_an_added_column_that_may_be_null() -> None:
    added = conflict_matrix.shapes()[ops.Merge][1].operation
    assert verdict(APPEND, added) == OK


def test_rows_cannot_come_with_ids_that_are_taken() -> None:
    op = ops.Append(fragments=(replace(NEW, row_ids=ids([3])),))
    with pytest.raises(InvalidRequestError, match="row id 3 is taken"):
        after(op, table(stable=True))


def test_rows_are_kept_after_unknown_changes_of_rows() -> None:
    delete = conflict_matrix.shapes()[ops.Delete][0].operation
    assert unseen(APPEND, APPEND, delete) == OK


def test_rows_are_kept_after_an_unknown_column_that_may_be_null() -> None:
    assert unseen(APPEND, conflict_matrix.shapes()[ops.Merge][1].operation) == OK


def test_rows_are_written_again_after_an_unknown_cast_of_their_column() -> None:
    cast = conflict_matrix.shapes()[ops.Merge][2].operation
    assert unseen(ops.Append(fragments=(NEW,)), cast) == Retryable("the schema changed")


@pytest.mark.parametrize(
    "changes", [{"name": "other"}, {"logical_type": "int64"}, {"nullable": False}], ids=str
)
def test_rows_are_written_again_after_an_unknown_table_of_the_same_field_ids(
    changes: dict[str, Any],
) -> None:
    schema = conflict_matrix.table().manifest.schema
    fields = tuple(
        replace(f, **changes) if f.id == conflict_matrix.VALUE else f for f in schema.fields
    )
    replaced = ops.Overwrite(fragments=(NEW,), schema=replace(schema, fields=fields))
    assert unseen(APPEND, replaced) == Retryable("the schema changed")


def test_rows_are_written_again_after_an_unknown_column_that_is_required() -> None:
    schema = conflict_matrix.table().manifest.schema
    required = replace(schema.fields[1], id=FieldId(9), name="required", nullable=False)
    added = ops.Merge(
        fragments=tuple(conflict_matrix.table().manifest.fragments),
        schema=replace(schema, fields=(*schema.fields, required)),
    )
    assert unseen(APPEND, added) == Retryable("the schema changed")
