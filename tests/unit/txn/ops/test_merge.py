from __future__ import annotations

from dataclasses import replace

import pytest

from lancelake.errors import InvalidRequestError
from lancelake.format import operations as ops
from lancelake.format.frozen import FrozenMap
from lancelake.txn import conflict_matrix
from lancelake.txn.conflict_matrix import FIRST, SECOND, TEXT, VALUE, index
from tests.unit.txn.making import after, covered, table, versions


def merge() -> ops.Merge:
    op = conflict_matrix.shapes()[ops.Merge][0].operation
    assert isinstance(op, ops.Merge)
    return op


def test_fragments_and_schema_are_taken_as_given() -> None:
    state = after(merge()).manifest
    assert state.schema.names == ("id", "value", "text", "added")
    assert [len(f.files) for f in state.fragments] == [2, 2]


def test_a_fragment_cannot_be_left_out() -> None:
    with pytest.raises(InvalidRequestError, match="1 is missing"):
        after(replace(merge(), fragments=merge().fragments[:1]))


def test_rows_cannot_come_or_go() -> None:
    first, second = merge().fragments
    with pytest.raises(InvalidRequestError, match="cannot change the 10 rows"):
        after(replace(merge(), fragments=(replace(first, physical_rows=9), second)))


def test_rows_of_changed_fragments_are_dated() -> None:
    head = table(stable=True)
    column = conflict_matrix.data_file("added.lance", (conflict_matrix.ADDED,))
    first, second = head.manifest.fragments
    changed = replace(first, files=(*first.files, column))
    state = after(replace(merge(), fragments=(changed, second)), head).manifest
    assert versions(state.fragments[0].last_updated_at_versions, 10) == [2] * 10
    assert versions(state.fragments[1].last_updated_at_versions, 10) == [1] * 10


def test_indices_on_columns_that_are_gone_go() -> None:
    schema = replace(merge().schema, fields=merge().schema.fields[:2])
    kept, gone = index("v", VALUE, FIRST), index("t", TEXT, FIRST)
    state = after(replace(merge(), schema=schema), table(indices=(kept, gone)))
    assert state.indices == (kept,)


def test_indices_lose_fragments_whose_column_was_rewritten() -> None:
    first, second = table().manifest.fragments
    column = conflict_matrix.data_file("value.lance", (VALUE,))
    split = replace(first.files[0], fields=(conflict_matrix.KEY, conflict_matrix.FieldId(-2), TEXT))
    changed = replace(first, files=(split, column))
    op = ops.Merge(fragments=(changed, second), schema=table().manifest.schema)
    (found,) = after(op, table(indices=(index("v", VALUE, FIRST, SECOND),))).indices
    assert covered(found) == {SECOND}


def test_metadata_of_the_schema_stays_when_none_is_given() -> None:
    head = table()
    schema = replace(head.manifest.schema, metadata=FrozenMap({"k": b"v"}))
    head = replace(head, manifest=replace(head.manifest, schema=schema))
    assert after(merge(), head).manifest.schema.metadata == {"k": b"v"}
