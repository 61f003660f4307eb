"""Corrections of recorded errors before the next change."""

from __future__ import annotations

from dataclasses import replace

from lancelake.format.fragment import DataFile, FileVersion, Fragment
from lancelake.format.ids import FieldId, FragmentId, Version
from lancelake.format.manifest import Manifest
from lancelake.format.schema import Schema
from lancelake.txn.options import NO_CORRECTIONS, Corrections, TableState


def fragment(number: int, rows: int) -> Fragment:
    file = DataFile(
        path=f"{number}.lance", fields=(FieldId(0),), file_major_version=2, file_minor_version=1
    )
    return Fragment(id=FragmentId(number), files=(file,), physical_rows=rows)


def state(*fragments: Fragment, next_row_id: int = 0) -> TableState:
    manifest = Manifest(
        schema=Schema(fields=()),
        fragments=fragments,
        version=Version(1),
        data_version=FileVersion.V2_1,
        next_row_id=next_row_id,
    )
    return TableState(manifest=manifest)


def test_nothing_to_mend_leaves_a_version_alone() -> None:
    before = state(fragment(0, 3), next_row_id=3)
    assert NO_CORRECTIONS.applied(before) is before


def test_entries_take_the_place_of_those_with_their_id() -> None:
    right = replace(fragment(1, 3), physical_rows=9)
    after = Corrections(fragments=(right,)).applied(state(fragment(0, 3), fragment(1, 3)))
    assert tuple(after.manifest.fragments) == (fragment(0, 3), right)


def test_next_row_id_never_goes_down() -> None:
    assert Corrections(next_row_id=5).applied(state(next_row_id=7)).manifest.next_row_id == 7


def test_next_row_id_goes_up() -> None:
    assert Corrections(next_row_id=9).applied(state(next_row_id=7)).manifest.next_row_id == 9
