from __future__ import annotations

from dataclasses import replace

import pytest

from lancelake.errors import InvalidRequestError
from lancelake.format import operations as ops
from lancelake.format.ids import FragmentId
from lancelake.format.index_meta import FRAGMENT_REUSE, IndexDetails
from lancelake.format.operations import RewriteGroup, RewrittenIndex
from lancelake.format.rowids import VersionSequence
from lancelake.txn import conflict_matrix
from lancelake.txn.build import conflicts
from lancelake.txn.conflict_matrix import FIRST, SECOND, VALUE, fragment, index
from lancelake.txn.options import VersionChoices
from lancelake.txn.rules import OK, Context, Retryable
from tests.unit.txn.making import OPTIONS, after, covered, fragment_ids, ids, table, versions

NEW = replace(fragment(FragmentId(5), path="new.lance"), physical_rows=20)
BOTH = RewriteGroup(old_fragments=(fragment(FIRST), fragment(SECOND)), new_fragments=(NEW,))
COMPACT = ops.Rewrite(groups=(BOTH,))
REUSE = replace(index(FRAGMENT_REUSE, VALUE), fields=(), fragment_bitmap=b"")


def test_new_fragments_take_the_place_of_old_ones() -> None:
    state = after(COMPACT)
    assert (fragment_ids(state), state.manifest.max_fragment_id) == ([5], 5)


def test_a_fragment_that_is_not_there_cannot_be_rewritten() -> None:
    group = RewriteGroup(old_fragments=(fragment(FragmentId(9)),), new_fragments=())
    with pytest.raises(InvalidRequestError, match="replaces fragment 9"):
        after(ops.Rewrite(groups=(group,)))


def test_an_index_of_addresses_stays_unless_remapped() -> None:
    entry = index("i", VALUE, FIRST, SECOND)
    assert after(COMPACT, table(indices=(entry,))).indices == (entry,)


def test_a_remapped_index_takes_over_the_new_fragments() -> None:
    entry, new = index("i", VALUE, FIRST, SECOND), index("new", VALUE)
    op = replace(COMPACT, rewritten_indices=(RewrittenIndex(old_id=entry.uuid, new_id=new.uuid),))
    (found,) = after(op, table(indices=(entry,))).indices
    assert (found.uuid, found.name, covered(found)) == (new.uuid, "i", {5})


def test_an_index_cannot_be_remapped_twice() -> None:
    entry, new = index("i", VALUE, FIRST, SECOND), index("new", VALUE)
    twice = (RewrittenIndex(old_id=entry.uuid, new_id=new.uuid),) * 2
    with pytest.raises(InvalidRequestError, match="twice"):
        after(replace(COMPACT, rewritten_indices=twice), table(indices=(entry,)))


def test_an_index_of_row_ids_follows_its_rows() -> None:
    (found,) = after(
        _stable(), table(stable=True, indices=(index("i", VALUE, FIRST, SECOND),))
    ).indices
    assert covered(found) == {5}


def test_an_index_of_addresses_loses_rows_with_stable_ids() -> None:
    details = IndexDetails(type_url="/lance.table.ZoneMapIndexDetails", value=b"")
    entry = replace(index("i", VALUE, FIRST, SECOND), details=details)
    (found,) = after(_stable(), table(stable=True, indices=(entry,))).indices
    assert covered(found) == set()


def test_covered_and_uncovered_fragments_cannot_be_mixed() -> None:
    head = table(stable=True, indices=(index("i", VALUE, FIRST),))
    with pytest.raises(InvalidRequestError, match="some but not all"):
        after(_stable(), head)


def test_the_record_of_moved_rows_is_put_in() -> None:
    options = replace(OPTIONS, choices=VersionChoices(fragment_reuse=REUSE))
    assert after(COMPACT, options=options).indices == (REUSE,)


def test_row_versions_come_with_the_fragments() -> None:
    (new,) = after(_stable(), table(stable=True)).manifest.fragments
    assert versions(new.created_at_versions, 20) == [1] * 20


def test_indices_do_not_hinder_when_moves_are_recorded_aside() -> None:
    theirs = ops.CreateIndex(new_indices=(index("i", VALUE, FIRST, SECOND),))
    context = Context(base=table(), theirs_after=after(theirs), fragment_reuse=REUSE)
    assert conflicts(COMPACT, theirs, context) == OK


def test_an_index_of_some_of_what_becomes_one_cannot_follow_its_rows() -> None:
    theirs = ops.CreateIndex(new_indices=(index("i", VALUE, FIRST),))
    context = Context(base=table(), theirs_after=after(theirs), fragment_reuse=REUSE)
    assert isinstance(conflicts(COMPACT, theirs, context), Retryable)


def test_a_changed_record_of_moves_must_be_read_again() -> None:
    theirs = ops.CreateIndex(new_indices=(REUSE,))
    context = Context(base=table(), theirs_after=after(theirs), fragment_reuse=REUSE)
    assert isinstance(conflicts(COMPACT, theirs, context), Retryable)


def _stable() -> ops.Rewrite:
    old = table(stable=True).manifest.fragments
    made = VersionSequence.constant(1, rows=2 * conflict_matrix.ROWS).encode()
    new = replace(
        NEW, row_ids=ids(range(20)), created_at_versions=made, last_updated_at_versions=made
    )
    return ops.Rewrite(groups=(RewriteGroup(old_fragments=tuple(old), new_fragments=(new,)),))
