"""A segment built by tasks is the one that is built at once."""

from __future__ import annotations

from pathlib import Path

import pytest

import lancelake.pylance as lance
from lancelake.engine.local import LocalEngine
from lancelake.table.index.build import IndexRun, create_index
from lancelake.table.index.parallel import BuiltByTasks
from lancelake.table.index.request import IndexRequest
from tests.support.scalar_index_tables import FILTERS, IndexedTable, entries

KINDS = {"BTREE": "i", "BITMAP": "k", "LABEL_LIST": "l"}


@pytest.mark.parametrize("kind", KINDS)
def test_groups_of_fragments_are_merged_into_one_segment(
    table: lance.LanceDataset, kind: str
) -> None:
    column = KINDS[kind]
    run = IndexRun(builder=BuiltByTasks(LocalEngine(parallelism=2)))
    create_index(table._snapshot, IndexRequest(column=column, kind=kind), run)

    found = IndexedTable(table.uri)
    assert [w for text in FILTERS[column] if (w := found.difference(text, column))] == []
    (entry,) = entries(table.uri)
    assert {path.parent.name for path in Path(table.uri, "_indices").glob("*/*")} == {
        str(entry.uuid)
    }
