from __future__ import annotations

from dataclasses import replace

from lancelake.format import operations as ops
from lancelake.format.ids import FragmentId
from lancelake.txn import conflict_matrix
from lancelake.txn.rules import OK
from tests.unit.txn.making import after, table, unseen


def test_the_reserved_ids_are_the_highest() -> None:
    assert after(ops.ReserveFragments(num_fragments=3)).manifest.max_fragment_id == 4


def test_an_empty_table_reserves_from_one() -> None:
    head = table()
    empty = replace(head, manifest=replace(head.manifest, fragments=(), max_fragment_id=None))
    assert after(ops.ReserveFragments(num_fragments=3), empty).manifest.max_fragment_id == 3


def test_ids_are_reserved_after_unknown_commits() -> None:
    append = ops.Append(fragments=(conflict_matrix.fragment(FragmentId(0), path="new.lance"),))
    assert unseen(ops.ReserveFragments(num_fragments=3), append) == OK
