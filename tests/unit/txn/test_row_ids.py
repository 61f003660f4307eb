from __future__ import annotations

from dataclasses import replace

import pytest

from lancelake.errors import UnsupportedError
from lancelake.format import rowids
from lancelake.format.fragment import ExternalFile, Fragment
from lancelake.format.ids import FragmentId, Version
from lancelake.format.rowids import VersionSequence
from lancelake.txn.conflict_matrix import fragment
from lancelake.txn.fragments import for_moved_rows, for_new_rows, row_id_count
from tests.unit.txn.making import ids, row_id_list, versions

TWO = Version(2)


def new(rows: int, given: bytes | None = None) -> Fragment:
    return replace(fragment(FragmentId(0)), physical_rows=rows, row_ids=given)


def test_ids_are_given_out_in_order() -> None:
    found = for_new_rows([new(2), new(3)], next_row_id=5, version=TWO)
    assert [row_id_list(f) for f in found.fragments] == [[5, 6], [7, 8, 9]]
    assert found.next_row_id == 10


def test_ids_that_continue_a_range_make_one_range() -> None:
    (found,) = for_new_rows([new(4, ids([3, 4]))], next_row_id=5, version=TWO).fragments
    assert isinstance(found.row_ids, bytes)
    assert len(rowids.decode_row_ids(found.row_ids)) == 1


def test_rows_made_in_several_versions_keep_them() -> None:
    made = VersionSequence(((2, 1), (1, 4))).encode()
    source = replace(new(3, ids([0, 1, 2])), created_at_versions=made)
    moved = new(3, ids([2, 0, 1]))
    found = for_moved_rows([moved], sources=[source], next_row_id=9, version=Version(6))
    assert versions(found.fragments[0].created_at_versions, 3) == [4, 1, 1]


def test_rows_of_unknown_age_are_of_version_one() -> None:
    source = new(2, ids([0, 1]))
    found = for_moved_rows(
        [new(2, ids([0, 1]))], sources=[source], next_row_id=9, version=Version(6)
    )
    assert versions(found.fragments[0].created_at_versions, 2) == [1, 1]


def test_row_ids_outside_the_manifest_are_not_supported() -> None:
    far = replace(new(2), row_ids=ExternalFile(path="x", offset=0, size=1))
    with pytest.raises(UnsupportedError):
        row_id_count(far)
