from __future__ import annotations

from dataclasses import replace

import pytest

from lancelake.errors import InvalidRequestError
from lancelake.format import operations as ops
from lancelake.format.ids import TOMBSTONE, FieldId
from lancelake.format.operations import Transaction
from lancelake.txn import conflict_matrix, merged_generations
from lancelake.txn.conflict_matrix import FIRST, SECOND, TEXT, VALUE, index, mark
from lancelake.txn.rules import OK, REBASE, Incompatible, Retryable
from tests.unit.txn.making import after, covered, rebased, table, verdict

INDEX = index("i", VALUE, FIRST, SECOND)
CREATE = ops.CreateIndex(new_indices=(INDEX,))
COLUMN = conflict_matrix.data_file("v.lance", (VALUE,))
OTHERS = replace(
    conflict_matrix.fragment(FIRST).files[0], fields=(conflict_matrix.KEY, TOMBSTONE, TEXT)
)
REWRITTEN = replace(conflict_matrix.fragment(FIRST), files=(OTHERS, COLUMN))
NEW_VALUES = ops.Update(updated_fragments=(REWRITTEN,), fields_modified=(VALUE,))


def test_removed_entries_go_and_new_ones_come() -> None:
    old = index("old", TEXT, FIRST)
    op = ops.CreateIndex(new_indices=(INDEX,), removed_indices=(old,))
    assert after(op, table(indices=(old,))).indices == (INDEX,)


def test_entries_of_one_name_are_segments() -> None:
    segment = replace(index("other", VALUE, SECOND), name="i")
    assert after(ops.CreateIndex(new_indices=(segment,)), table(indices=(INDEX,))).indices == (
        INDEX,
        segment,
    )


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="on field 9"):
        after(ops.CreateIndex(new_indices=(index("i", FieldId(9), FIRST),)))


def test_an_index_of_the_same_name_must_be_looked_at_again() -> None:
    assert isinstance(verdict(CREATE, CREATE), Retryable)


def test_an_index_of_another_name_is_no_conflict() -> None:
    assert verdict(CREATE, ops.CreateIndex(new_indices=(index("j", VALUE, FIRST),))) == OK


def test_values_rewritten_meanwhile_ask_for_a_rebase() -> None:
    assert verdict(CREATE, NEW_VALUES) == REBASE


def test_a_rebase_leaves_out_fragments_whose_values_were_rewritten() -> None:
    outcome, _ = rebased(CREATE, after(NEW_VALUES))
    assert isinstance(outcome, Transaction)
    assert isinstance(outcome.operation, ops.CreateIndex)
    assert covered(outcome.operation.new_indices[0]) == {SECOND}
    assert outcome.read_version == 1


def test_a_rebase_keeps_the_progress_of_the_mem_wal() -> None:
    head = table(indices=(conflict_matrix.mem_wal(mark("r", 5)),))
    mine = ops.CreateIndex(new_indices=(conflict_matrix.mem_wal(mark("r", 3), mark("s", 1)),))
    outcome, _ = rebased(mine, head)
    assert isinstance(outcome, Transaction)
    assert isinstance(outcome.operation, ops.CreateIndex)
    progress = merged_generations.progress_of(outcome.operation.new_indices[0])
    assert progress == {mark("r", 5).region_id: 5, mark("s", 1).region_id: 1}


def test_progress_rules_out_any_other_index() -> None:
    theirs = ops.UpdateMemWalState(merged_generations=(mark("r", 5),))
    base = table(indices=(conflict_matrix.mem_wal(),))
    assert isinstance(verdict(CREATE, theirs, base=base), Incompatible)
