"""Changes by an open dataset whose version, and those after it, were cleaned up since."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import RetryableConflictError

ROWS = pa.table({"a": pa.array([9], pa.int64())})


def others(path: Path) -> None:
    """Append three times, and remove all versions but the last."""
    for value in range(3):
        rows = pa.table({"a": pa.array([value], pa.int64())})
        lance.write_dataset(rows, path, mode="append")
    lance.dataset(path).cleanup_old_versions(older_than=timedelta(0))


@pytest.fixture
def stale(tmp_path: Path) -> lance.LanceDataset:
    path = tmp_path / "t.lance"
    opened = lance.write_dataset(ROWS, path)
    opened.insert(ROWS)
    others(path)
    assert [entry["version"] for entry in lance.dataset(path).versions()] == [5]
    return opened


CHANGES: dict[str, tuple[Callable[[lance.LanceDataset], object], int]] = {
    "insert": (lambda ds: ds.insert(ROWS), 6),
    "overwrite": (lambda ds: lance.write_dataset(ROWS, ds, mode="overwrite"), 1),
    "update_config": (lambda ds: ds.update_config({"k": "v"}), 5),
    "replace_schema_metadata": (lambda ds: ds.replace_schema_metadata({"k": "v"}), 5),
    "compact_files": (lambda ds: ds.optimize.compact_files(), 5),
    "delete": (lambda ds: ds.delete("a = 0"), 4),
    "update": (lambda ds: ds.update({"a": "a + 1"}), 5),
    "add_columns": (lambda ds: ds.add_columns({"b": "a"}), 5),
    "create_index": (lambda ds: ds.create_scalar_index("a", "BTREE"), 5),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_made_on_the_newest_version(stale: lance.LanceDataset, change: str) -> None:
    make, rows = CHANGES[change]
    make(stale)
    newest = lance.dataset(stale.uri)
    assert (newest.version > 5, newest.count_rows()) == (True, rows)


def test_rows_do_not_go_to_a_column_that_was_replaced_since(stale: lance.LanceDataset) -> None:
    lance.write_dataset(pa.table({"other": [1]}), stale.uri, mode="overwrite")
    lance.dataset(stale.uri).cleanup_old_versions(older_than=timedelta(0))
    with pytest.raises(RetryableConflictError, match="the schema changed"):
        stale.insert(ROWS)
    assert lance.dataset(stale.uri).to_table().to_pydict() == {"other": [1]}


def test_a_transaction_of_the_caller_is_not_committed_a_second_time(
    stale: lance.LanceDataset,
) -> None:
    (fragment,) = lance.fragment.write_fragments(ROWS, stale.uri)
    operation = lance.LanceOperation.Append([fragment])
    mine = lance.Transaction(read_version=stale.version, operation=operation)
    with pytest.raises(RetryableConflictError, match="no longer exists"):
        lance.LanceDataset.commit(stale, mine)
