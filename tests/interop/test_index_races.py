"""An index that is built while others change the table gives right answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import lancelake.pylance as lance
from lancelake.engine.port import JobProgress
from lancelake.errors import IncompatibleConflictError
from lancelake.maintenance.check.finding import Severity
from lancelake.table.index.build import IndexRun, create_index
from lancelake.table.index.refresh import refresh_indices
from lancelake.table.index.request import IndexRequest
from tests.support.official import Official
from tests.support.scalar_index_tables import rows
from tests.support.sound_tables import findings

ASK = """
ds = lance.dataset(uri)
result = [
    [text, sorted(ds.to_table(filter=text, columns=["n"])["n"].to_pylist()),
     sorted(ds.to_table(filter=text, columns=["n"], use_scalar_index=False)["n"].to_pylist())]
    for text in ("i < -100", "i is null", "not (i < 100)", "i = 8")
]
"""
Change = Callable[[lance.LanceDataset], object]
CHANGES: dict[str, Change] = {
    "append": lambda ds: ds.insert(rows(50, seed=3)),
    "delete": lambda ds: ds.delete("n % 3 = 1"),
    "delete a fragment": lambda ds: ds.delete("n < 100"),
    "update": lambda ds: ds.update({"i": "i + 1"}, "n % 5 = 1", write_mode="rewrite_rows"),
    "write a column": lambda ds: ds.update({"i": "i + 1"}, "n < 50", write_mode="rewrite_columns"),
    "merge": lambda ds: ds.merge_insert("n").when_matched_update_all().execute(rows(60, seed=4)),
    "compact": lambda ds: ds.optimize.compact_files(target_rows_per_fragment=1000),
    "compact and defer": lambda ds: ds.optimize.compact_files(
        target_rows_per_fragment=1000, defer_index_remap=True
    ),
    "another build": lambda ds: ds.create_scalar_index("k", "BITMAP"),
    "the same build": lambda ds: ds.create_scalar_index("i", "BTREE"),
    "drop": lambda ds: ds.drop_index("s_idx"),
    "refresh": lambda ds: ds.optimize.optimize_indices(),
    "drop another column": lambda ds: ds.drop_columns(["k"]),
}


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def table(request: pytest.FixtureRequest, tmp_table: str) -> lance.LanceDataset:
    """Return a table of three fragments with an index of another column."""
    found = lance.write_dataset(
        rows(300), tmp_table, max_rows_per_file=100, enable_stable_row_ids=request.param
    )
    found.delete("n % 7 = 3")
    found.create_scalar_index("s", "BTREE")
    return found


def once(uri: str, change: Change) -> IndexRun:
    """Return how to build so that a change lands while the first attempt reads rows."""
    done: list[str] = []

    def report(_: JobProgress) -> None:
        if not done:
            done.append(uri)
            change(lance.dataset(uri))

    return IndexRun(progress=report)


def ensure_right(uri: str, official: Official) -> None:
    for text, found, expected in official.run(uri, ASK):
        assert found == expected, text
    assert [f for f in findings(Path(uri), data=True) if f.severity is Severity.ERROR] == []


@pytest.mark.parametrize("change", CHANGES)
def test_a_build_stands_beside_a_change(
    table: lance.LanceDataset, change: str, official_14: Official
) -> None:
    request = IndexRequest(column="i", kind="BTREE")
    create_index(table._snapshot, request, once(table.uri, CHANGES[change]))

    assert "i_idx" in {i.name for i in lance.dataset(table.uri).describe_indices()}
    ensure_right(table.uri, official_14)


@pytest.mark.parametrize("change", CHANGES)
def test_a_refresh_stands_beside_a_change(
    table: lance.LanceDataset, change: str, official_14: Official
) -> None:
    table.create_scalar_index("i", "BTREE")
    table.insert(rows(50, seed=2))
    refresh_indices(table._snapshot, run=once(table.uri, CHANGES[change]))

    ensure_right(table.uri, official_14)


def test_a_build_of_a_table_that_was_replaced_fails(table: lance.LanceDataset) -> None:
    run = once(table.uri, lambda ds: lance.write_dataset(rows(9), ds.uri, mode="overwrite"))
    with pytest.raises(IncompatibleConflictError):
        create_index(table._snapshot, IndexRequest(column="i", kind="BTREE"), run)

    assert lance.dataset(table.uri).describe_indices() == []
