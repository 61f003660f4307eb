"""Parts of a BTREE under one uuid, merged and committed by hand, as with release 4.0.2."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError
from tests.support.scalar_index_tables import FILTERS, IndexedTable


def test_merged_parts_answer_as_a_scan_does(table: lance.LanceDataset) -> None:
    unique = str(uuid.uuid4())
    for fragments in ([0, 1], [2]):
        table.create_scalar_index("i", "BTREE", fragment_ids=fragments, index_uuid=unique)
    table.merge_index_metadata(unique, "BTREE")
    field = table.lance_schema.field("i")
    entry = lance.Index(unique, "i_idx", [field.id()], table.version, {0, 1, 2}, 0)
    operation = lance.LanceOperation.CreateIndex([entry], [])
    lance.LanceDataset.commit(table.uri, operation, read_version=table.version)

    assert {path.name for path in Path(table.uri, "_indices", unique).iterdir()} == {
        "page_data.lance",
        "page_lookup.lance",
    }
    found = IndexedTable(table.uri)
    assert [w for text in FILTERS["i"] if (w := found.difference(text, "i"))] == []


def test_parts_that_do_not_exist_are_refused(table: lance.LanceDataset) -> None:
    with pytest.raises(InvalidRequestError, match="no parts of an index"):
        table.merge_index_metadata(str(uuid.uuid4()), "BTREE")


def test_fragments_without_a_uuid_are_refused(table: lance.LanceDataset) -> None:
    with pytest.raises(InvalidRequestError, match="create_index_uncommitted"):
        table.create_scalar_index("i", "BTREE", fragment_ids=[0])
