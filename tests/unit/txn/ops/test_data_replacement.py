from __future__ import annotations

from dataclasses import replace

import pytest

from lancelake.errors import InvalidRequestError
from lancelake.format import operations as ops
from lancelake.format.fragment import DataFile
from lancelake.format.ids import TOMBSTONE, FragmentId
from lancelake.format.operations import Replacement
from lancelake.txn import conflict_matrix
from lancelake.txn.conflict_matrix import FIRST, KEY, SECOND, TEXT, VALUE, data_file, index
from lancelake.txn.rules import Incompatible
from tests.unit.txn.making import after, covered, table, verdict, versions


def swap(file: DataFile, *fragments: FragmentId) -> ops.DataReplacement:
    found = (Replacement(fragment_id=i, new_file=file) for i in fragments)
    return ops.DataReplacement(replacements=tuple(found))


def test_a_file_of_the_same_columns_takes_the_place() -> None:
    new = data_file("new.lance", (KEY, VALUE, TEXT))
    assert after(swap(new, FIRST)).manifest.fragments[0].files == (new,)


def test_some_columns_of_a_file_are_retired_and_the_new_file_is_added() -> None:
    new = data_file("new.lance", (VALUE,))
    old, added = after(swap(new, FIRST)).manifest.fragments[0].files
    assert (old.fields, added) == ((KEY, TOMBSTONE, TEXT), new)


def test_a_file_that_is_retired_whole_goes() -> None:
    first = replace(
        conflict_matrix.fragment(FIRST),
        files=(data_file("a.lance", (KEY, TEXT)), data_file("b.lance", (VALUE,))),
    )
    head = table()
    head = replace(head, manifest=replace(head.manifest, fragments=(first,)))
    new = data_file("new.lance", (VALUE, TEXT))
    files = after(swap(new, FIRST), head).manifest.fragments[0].files
    assert [f.path for f in files] == ["a.lance", "new.lance"]


def test_indices_on_the_columns_lose_the_fragments() -> None:
    head = table(indices=(index("v", VALUE, FIRST, SECOND), index("t", TEXT, FIRST, SECOND)))
    found = after(swap(data_file("new.lance", (VALUE,)), FIRST), head).indices
    assert [covered(i) for i in found] == [{1}, {0, 1}]


def test_rows_are_dated() -> None:
    head = table(stable=True)
    first = after(swap(data_file("new.lance", (VALUE,)), FIRST), head).manifest.fragments[0]
    assert versions(first.last_updated_at_versions, 10) == [2] * 10


def test_an_unknown_fragment_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="refers to fragment 9"):
        after(swap(data_file("new.lance", (VALUE,)), FragmentId(9)))


def test_a_fragment_cannot_be_listed_twice() -> None:
    with pytest.raises(InvalidRequestError, match="twice"):
        after(swap(data_file("new.lance", (VALUE,)), FIRST, FIRST))


def test_all_files_hold_the_same_fields() -> None:
    one, other = data_file("a.lance", (VALUE,)), data_file("b.lance", (TEXT,))
    op = ops.DataReplacement(
        replacements=(
            Replacement(fragment_id=FIRST, new_file=one),
            Replacement(fragment_id=SECOND, new_file=other),
        )
    )
    with pytest.raises(InvalidRequestError, match="same fields"):
        after(op)


def test_a_column_that_is_gone_cannot_be_replaced() -> None:
    gone = conflict_matrix.shapes()[ops.Project][1].operation
    assert isinstance(verdict(swap(data_file("t.lance", (TEXT,)), FIRST), gone), Incompatible)
