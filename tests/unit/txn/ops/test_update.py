from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from google.protobuf.internal import encoder
from pyroaring import BitMap

from lancelake.errors import InvalidRequestError
from lancelake.format import operations as ops
from lancelake.format.fragment import Fragment
from lancelake.format.ids import TOMBSTONE, FragmentId
from lancelake.format.operations import Transaction, UpdateMode
from lancelake.format.schema import Schema
from lancelake.txn import conflict_matrix, key_bloom, merged_generations
from lancelake.txn.conflict_matrix import FIRST, KEY, SECOND, TEXT, VALUE, index, mark, without_rows
from lancelake.txn.options import TableState
from lancelake.txn.rules import OK, REBASE, Incompatible, Retryable
from tests.unit.txn.making import (
    after,
    covered,
    fragment_ids,
    ids,
    rebased,
    row_id_list,
    table,
    verdict,
    versions,
)

NEW = replace(conflict_matrix.fragment(FragmentId(0), path="new.lance"), physical_rows=4)
MOVE = ops.Update(
    updated_fragments=(without_rows(FIRST, 1, 2),),
    new_fragments=(replace(NEW, physical_rows=2),),
    fields_for_preserving_frag_bitmap=(VALUE,),
)


def stable_move(row_ids: list[int], *, rows: int) -> ops.Update:
    """Move rows 1 and 2 of the first fragment, and perhaps insert others."""
    first = table(stable=True).manifest.fragments[0]
    updated = replace(first, deletion_file=without_rows(FIRST, 1, 2).deletion_file)
    new = replace(NEW, physical_rows=rows, row_ids=ids(row_ids))
    return replace(MOVE, updated_fragments=(updated,), new_fragments=(new,))


def rewritten_values(fragment: Fragment) -> Fragment:
    old = replace(fragment.files[0], fields=(KEY, TOMBSTONE, TEXT))
    return replace(fragment, files=(old, conflict_matrix.data_file("values.lance", (VALUE,))))


def inserting(keys: pa.Array, field: int = KEY) -> ops.Update:
    recorded = key_bloom.build((conflict_matrix.FieldId(field),), [[keys]])
    return ops.Update(new_fragments=(NEW,), inserted_rows=recorded)


def test_rows_move_to_new_fragments() -> None:
    state = after(MOVE)
    assert fragment_ids(state) == [0, 1, 2]
    assert [f.live_rows for f in state.manifest.fragments] == [8, 10, 2]


def test_moved_rows_keep_their_ids_and_when_they_were_made() -> None:
    state = after(stable_move([1, 2], rows=2), table(stable=True))
    new = state.manifest.fragments[2]
    assert row_id_list(new) == [1, 2]
    assert versions(new.created_at_versions, 2) == [1, 1]
    assert versions(new.last_updated_at_versions, 2) == [2, 2]
    assert state.manifest.next_row_id == 20


def test_inserted_rows_get_fresh_ids_and_this_version() -> None:
    state = after(stable_move([1, 2], rows=4), table(stable=True))
    new = state.manifest.fragments[2]
    assert row_id_list(new) == [1, 2, 20, 21]
    assert versions(new.created_at_versions, 4) == [1, 1, 2, 2]
    assert state.manifest.next_row_id == 22


def test_more_row_ids_than_rows_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="3 row ids for 2 rows"):
        after(stable_move([1, 2, 3], rows=2), table(stable=True))


def test_a_row_id_that_was_never_given_out_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="row id 77 was never assigned"):
        after(stable_move([1, 77], rows=2), table(stable=True))


def test_a_row_id_for_two_rows_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="two rows"):
        after(stable_move([1, 1], rows=2), table(stable=True))


def test_indices_on_other_columns_follow_moved_rows() -> None:
    by_text, by_value = index("t", TEXT, FIRST, SECOND), index("v", VALUE, FIRST, SECOND)
    head = table(stable=True, indices=(by_text, by_value))
    found = after(stable_move([1, 2], rows=2), head).indices
    assert [covered(i) for i in found] == [{0, 1, 2}, {0, 1}]


def test_indices_do_not_follow_when_rows_were_inserted() -> None:
    head = table(stable=True, indices=(index("t", TEXT, FIRST, SECOND),))
    (found,) = after(stable_move([1, 2], rows=4), head).indices
    assert covered(found) == {0, 1}


def test_indices_do_not_follow_from_fragments_they_do_not_cover() -> None:
    head = table(stable=True, indices=(index("t", TEXT, SECOND),))
    (found,) = after(stable_move([1, 2], rows=2), head).indices
    assert covered(found) == {1}


def test_indices_do_not_follow_when_changed_columns_are_not_named() -> None:
    op = replace(stable_move([1, 2], rows=2), fields_for_preserving_frag_bitmap=())
    (found,) = after(op, table(stable=True, indices=(index("t", TEXT, FIRST),))).indices
    assert covered(found) == {0}


def test_indices_lose_fragments_whose_columns_were_rewritten() -> None:
    op = ops.Update(
        updated_fragments=(rewritten_values(conflict_matrix.fragment(FIRST)),),
        fields_modified=(VALUE,),
        update_mode=UpdateMode.REWRITE_COLUMNS,
    )
    head = table(indices=(index("v", VALUE, FIRST, SECOND), index("t", TEXT, FIRST, SECOND)))
    assert [covered(i) for i in after(op, head).indices] == [{1}, {0, 1}]


def test_rows_whose_columns_were_rewritten_are_dated() -> None:
    head = table(stable=True)
    op = ops.Update(
        updated_fragments=(rewritten_values(head.manifest.fragments[0]),),
        fields_modified=(VALUE,),
        update_mode=UpdateMode.REWRITE_COLUMNS,
        unknown=_offsets(FIRST, BitMap([0, 3])),
    )
    first = after(op, head).manifest.fragments[0]
    assert versions(first.last_updated_at_versions, 10) == [2, 1, 1, 2, 1, 1, 1, 1, 1, 1]


def test_merged_generations_are_recorded() -> None:
    op = ops.Update(merged_generations=(mark("r", 5),))
    (entry,) = after(op, table(indices=(conflict_matrix.mem_wal(),))).indices
    assert merged_generations.progress_of(entry) == {mark("r", 5).region_id: 5}


def test_keys_that_were_inserted_must_be_looked_up_again() -> None:
    keys = pa.array(range(5), pa.int64())
    assert isinstance(verdict(inserting(keys), inserting(keys)), Retryable)


def test_other_keys_are_no_conflict() -> None:
    mine, theirs = pa.array(range(5), pa.int64()), pa.array(range(50, 55), pa.int64())
    assert verdict(inserting(mine), inserting(theirs)) == OK


def test_keys_of_other_fields_must_be_looked_up_again() -> None:
    mine, theirs = pa.array([1], pa.int64()), pa.array([9], pa.int32())
    assert isinstance(verdict(inserting(mine), inserting(theirs, VALUE)), Retryable)


def test_keys_must_be_looked_up_again_after_inserts_without_keys() -> None:
    mine = inserting(pa.array([1], pa.int64()))
    assert isinstance(verdict(mine, ops.Update(new_fragments=(NEW,))), Retryable)


def test_an_empty_filter_over_dates_says_nothing() -> None:
    base = _with_key_type("date32:day")
    mine, nothing = pa.array([1], pa.date32()), pa.array([], pa.date32())
    assert isinstance(verdict(inserting(mine), inserting(nothing), base=base), Retryable)


def test_an_empty_filter_over_numbers_says_that_nothing_was_inserted() -> None:
    mine, nothing = pa.array([1], pa.int64()), pa.array([], pa.int64())
    assert verdict(inserting(mine), inserting(nothing)) == OK


def test_progress_of_the_same_region_is_a_conflict() -> None:
    base = table(indices=(conflict_matrix.mem_wal(),))
    five, six = (ops.Update(merged_generations=(mark("r", n),)) for n in (5, 6))
    assert isinstance(verdict(five, six, base=base), Incompatible)
    assert isinstance(verdict(six, five, base=base), Retryable)


def test_columns_rewritten_in_place_are_not_rebased() -> None:
    mine = ops.Update(
        updated_fragments=(rewritten_values(conflict_matrix.fragment(FIRST)),),
        update_mode=UpdateMode.REWRITE_COLUMNS,
    )
    theirs = ops.Delete(
        updated_fragments=(without_rows(FIRST, 1),), deleted_fragment_ids=(), predicate="p"
    )
    assert isinstance(verdict(mine, theirs, rows={FIRST: (2,)}), Retryable)


def test_a_rebase_unites_moved_rows_with_deleted_ones() -> None:
    theirs = ops.Delete(
        updated_fragments=(without_rows(FIRST, 5),), deleted_fragment_ids=(), predicate="p"
    )
    assert verdict(MOVE, theirs, rows={FIRST: (1, 2)}) == REBASE
    outcome, port = rebased(MOVE, after(theirs), {FIRST: (1, 2)})
    assert isinstance(outcome, Transaction)
    assert isinstance(outcome.operation, ops.Update)
    file = outcome.operation.updated_fragments[0].deletion_file
    assert file is not None
    assert set(port.stored[file.id]) == {1, 2, 5}


def _with_key_type(logical_type: str) -> TableState:
    head = table()
    fields = head.manifest.schema.fields
    key = replace(fields[0], logical_type=logical_type)
    schema = Schema(fields=(key, *fields[1:]))
    return replace(head, manifest=replace(head.manifest, schema=schema))


def _offsets(fragment_id: FragmentId, rows: BitMap) -> bytes:
    """Encode field 10 of Update: a map from fragment to a bitmap of rows."""
    bitmap = bytes(rows.serialize())
    entry = encoder.TagBytes(1, 0) + bytes([fragment_id])
    entry += encoder.TagBytes(2, 2) + bytes([len(bitmap)]) + bitmap
    return encoder.TagBytes(10, 2) + bytes([len(entry)]) + entry
