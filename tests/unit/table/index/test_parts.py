"""Parts of an index under one uuid, merged and committed by hand, as with release 4.0.2."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError
from lancelake.pylance.query import PhraseQuery
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


def test_merged_parts_of_a_text_index_are_searched(tmp_path: Path) -> None:
    words = pa.table({"t": [f"word{i % 3} some text" for i in range(30)]})
    table = lance.write_dataset(words, tmp_path / "t.lance", max_rows_per_file=10)
    unique = str(uuid.uuid4())
    for fragment in range(3):
        table.create_scalar_index(
            "t", "INVERTED", fragment_ids=[fragment], index_uuid=unique, with_position=True
        )
    table.merge_index_metadata(unique, "INVERTED")
    entry = lance.Index(unique, "t_idx", [0], table.version, {0, 1, 2}, 0)
    operation = lance.LanceOperation.CreateIndex([entry], [])
    table = lance.LanceDataset.commit(table.uri, operation, read_version=table.version)

    assert table.stats.index_stats("t_idx")["index_type"] == "Inverted"
    assert table.to_table(full_text_query="word1").num_rows == 10
    phrase = PhraseQuery("some text", "t")
    assert table.to_table(full_text_query=phrase, fast_search=True).num_rows == 30


def test_parts_that_do_not_exist_are_refused(table: lance.LanceDataset) -> None:
    with pytest.raises(InvalidRequestError, match="no parts of an index"):
        table.merge_index_metadata(str(uuid.uuid4()), "BTREE")


def test_fragments_without_a_uuid_are_refused(table: lance.LanceDataset) -> None:
    with pytest.raises(InvalidRequestError, match="create_index_uncommitted"):
        table.create_scalar_index("i", "BTREE", fragment_ids=[0])
