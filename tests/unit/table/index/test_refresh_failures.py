"""An index that cannot be refreshed does not keep others from being refreshed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lancelake.pylance as lance
from lancelake.cli.group import app
from lancelake.errors import LanceTableError
from lancelake.maintenance.optimize import optimize


@pytest.fixture
def table(tmp_path: Path) -> lance.LanceDataset:
    """Return a table with a damaged index and a sound one, and a row that neither covers."""
    made = lance.write_dataset(pa.table({"a": range(50), "b": range(50)}), tmp_path / "t")
    made.create_scalar_index("a", "BTREE")
    made.create_scalar_index("b", "BTREE")
    (damaged,) = (i for i in made.list_indices() if i["name"] == "a_idx")
    for file in Path(made.uri, "_indices", damaged["uuid"]).iterdir():
        file.write_bytes(b"damaged")
    made.insert(pa.table({"a": [7], "b": [7]}))
    return lance.dataset(made.uri)


def unindexed(table: lance.LanceDataset, name: str) -> int:
    (found,) = (i for i in table.describe_indices() if i.name == name)
    return table.count_rows() - found.num_rows_indexed


def test_the_others_are_refreshed_before_the_error(table: lance.LanceDataset) -> None:
    with pytest.raises(LanceTableError, match="a_idx"):
        table.optimize.optimize_indices()
    assert (unindexed(table, "a_idx"), unindexed(table, "b_idx")) == (1, 0)


def test_optimize_says_which_index_was_left(table: lance.LanceDataset) -> None:
    done = optimize(table._snapshot)
    assert any("'a_idx' is not refreshed" in reason for reason in done.skipped)
    assert unindexed(lance.dataset(table.uri), "b_idx") == 0


def test_the_command_refreshes_the_others_and_fails(table: lance.LanceDataset) -> None:
    done = CliRunner().invoke(app, ["index", "refresh", table.uri])
    assert done.exit_code != 0
    assert unindexed(lance.dataset(table.uri), "b_idx") == 0


def test_an_index_whose_model_is_damaged_is_named(tmp_path: Path) -> None:
    vectors = pa.array([[i, 1.0] for i in range(50)], pa.list_(pa.float32(), 2))
    made = lance.write_dataset(pa.table({"v": vectors}), tmp_path / "v")
    made.create_index("v", "IVF_FLAT", num_partitions=1)
    for file in Path(made.uri, "_indices").rglob("*.idx"):
        file.write_bytes(b"damaged")
    with pytest.raises(LanceTableError, match="index 'v_idx' cannot be read"):
        lance.dataset(made.uri).optimize.optimize_indices()


def test_all_failures_are_named(table: lance.LanceDataset) -> None:
    for file in Path(table.uri, "_indices").rglob("*.lance"):
        file.write_bytes(b"damaged")
    with pytest.raises(LanceTableError) as caught:
        table.optimize.optimize_indices()
    assert "b_idx" in "".join(caught.value.__notes__)
