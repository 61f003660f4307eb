from __future__ import annotations

from dataclasses import replace

from lancelake.format import operations as ops
from lancelake.format.frozen import FrozenMap
from lancelake.txn import conflict_matrix
from lancelake.txn.conflict_matrix import FIRST, TEXT, VALUE, index
from tests.unit.txn.making import after, table


def project() -> ops.Project:
    op = conflict_matrix.shapes()[ops.Project][0].operation
    assert isinstance(op, ops.Project)
    return op


def test_a_file_stays_while_one_of_its_columns_does() -> None:
    state = after(project()).manifest
    assert state.schema.names == ("id", "value")
    assert state.fragments == table().manifest.fragments


def test_a_file_without_columns_goes() -> None:
    head = table()
    text = conflict_matrix.data_file("text.lance", (TEXT,))
    first, second = head.manifest.fragments
    split = replace(
        first, files=(conflict_matrix.data_file("0.lance", (conflict_matrix.KEY, VALUE)), text)
    )
    head = replace(head, manifest=replace(head.manifest, fragments=(split, second)))
    assert [f.path for f in after(project(), head).manifest.fragments[0].files] == ["0.lance"]


def test_indices_on_dropped_columns_go() -> None:
    kept, gone = index("v", VALUE, FIRST), index("t", TEXT, FIRST)
    assert after(project(), table(indices=(kept, gone))).indices == (kept,)


def test_metadata_of_the_schema_stays() -> None:
    head = table()
    schema = replace(head.manifest.schema, metadata=FrozenMap({"k": b"v"}))
    head = replace(head, manifest=replace(head.manifest, schema=schema))
    assert after(project(), head).manifest.schema.metadata == {"k": b"v"}
