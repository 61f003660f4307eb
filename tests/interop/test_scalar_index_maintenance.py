"""Index segments built by one side and merged or remapped by the other still answer correctly."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import lancelake.pylance as lance
from lancelake.index.kind import DROPPED, IndexKind
from lancelake.index.kinds import kind_named
from tests.support.index_segments import build_input
from tests.support.official import Official
from tests.support.scalar_index_tables import (
    FILTERS,
    IndexedTable,
    commit_index,
    create_index,
    rows,
)

COLUMNS = {"BTREE": ("i", "f", "s"), "BITMAP": ("k", "f"), "LABEL_LIST": ("l",)}
COUNT = 6000
UPKEEP = """
ds = lance.dataset(uri)
ds.optimize.compact_files(target_rows_per_fragment=1_000_000)
ds.optimize.optimize_indices()
"""
ASK = """
ds = lance.dataset(uri)
result = []
for text in texts:
    scan = ds.to_table(filter=text, columns=["n"], use_scalar_index=False)["n"].to_pylist()
    found = ds.to_table(filter=text, columns=["n"])["n"].to_pylist()
    plan = ds.scanner(filter=text, columns=["n"]).explain_plan()
    if sorted(scan) != sorted(found):
        result.append(text)
    elif "ScalarIndexQuery" not in plan:
        result.append("not by index: " + text)
"""


def texts(name: str) -> list[str]:
    """Return the conditions that every release answers by an index of a kind."""
    return [text for column in COLUMNS[name] for text in FILTERS[column]]


def ours(uri: str, name: str) -> list[str]:
    """Return how our answers differ from scans."""
    table = IndexedTable(uri)
    asked = [(text, column) for column in COLUMNS[name] for text in FILTERS[column]]
    return [found for text, column in asked if (found := table.difference(text, column))]


@pytest.fixture
def grown(official: Official, tmp_table: str) -> str:
    """Return a table of three fragments with deleted rows."""
    official.write(tmp_table, rows(COUNT), max_rows_per_file=COUNT // 3, data_storage_version="2.0")
    official.delete(tmp_table, "n % 5 = 1")
    return tmp_table


@pytest.mark.parametrize(("name", "ranges"), [*((name, 0) for name in COLUMNS), ("BTREE", 2)])
def test_a_release_keeps_up_what_we_built(
    official: Official, grown: str, name: str, ranges: int
) -> None:
    for column in COLUMNS[name]:
        create_index(grown, column, kind_named(name), ranges=ranges)
    official.append(grown, rows(COUNT // 2, seed=1))
    official.delete(grown, "n % 5 = 2")
    official.run(grown, UPKEEP + "result = None")

    assert official.run(grown, ASK, texts=texts(name)) == []
    assert ours(grown, name) == []


@pytest.mark.parametrize("name", COLUMNS)
def test_a_release_uses_its_segment_merged_by_us_with_new_rows(
    official: Official, grown: str, name: str
) -> None:
    kind = kind_named(name)
    for column in COLUMNS[name]:
        official.create_scalar_index(grown, column, name)
    old = lance.dataset(grown)
    official.append(grown, rows(COUNT // 2, seed=1))
    for column in COLUMNS[name]:
        facts = IndexedTable(grown).facts(column)
        new = new_rows(grown, column, kind, since=len(old.get_fragments()))
        commit_index(grown, column, partial(kind.merge, [(facts, None)], new))

    assert official.run(grown, ASK, texts=texts(name)) == []
    assert ours(grown, name) == []


def new_rows(uri: str, column: str, kind: IndexKind, *, since: int):
    table = lance.dataset(uri).to_table(columns=[column], with_row_address=True)
    is_new = np.asarray(table["_rowaddr"].to_numpy() >> np.uint64(32)) >= since
    values = table[column].combine_chunks().filter(is_new)
    return build_input(kind, values, table["_rowaddr"].to_numpy()[is_new].tolist())


@pytest.mark.parametrize("name", COLUMNS)
def test_a_release_uses_its_segment_remapped_by_us(
    official: Official, grown: str, name: str
) -> None:
    kind = kind_named(name)
    for column in COLUMNS[name]:
        official.create_scalar_index(grown, column, name)
    official.delete(grown, "n % 5 = 3")
    live = lance.dataset(grown).to_table(columns=["n"], with_row_address=True)["_rowaddr"]
    left = np.sort(live.to_numpy())

    def row_map(ids):
        return np.where(np.isin(ids, left), ids, np.uint64(DROPPED))

    for column in COLUMNS[name]:
        facts = IndexedTable(grown).facts(column)
        commit_index(grown, column, partial(kind.remap, facts, row_map))

    assert official.run(grown, ASK, texts=texts(name)) == []
    assert ours(grown, name) == []
