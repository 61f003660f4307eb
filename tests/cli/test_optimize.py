"""`lancelake optimize`: due maintenance and its report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as lance

Document = Callable[..., Any]
Output = Callable[..., str]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Return a table of six fragments with ten rows each."""
    uri = tmp_path / "small.lance"
    rows = pa.table({"id": pa.array(range(60), pa.int64())})
    lance.write_dataset(rows, uri, max_rows_per_file=10)
    return uri


def test_a_dry_run_says_it_and_changes_nothing(document: Document, small: Path) -> None:
    body = document("optimize", small, "--dry-run")
    assert (body["dry_run"], body["compaction"]["fragments_removed"]) == (True, 6)
    assert document("info", small)["version"] == 1


def test_it_compacts(document: Document, small: Path) -> None:
    body = document("optimize", small, "--message", "nightly")
    assert body["compaction"]["fragments_added"] == 1
    assert document("info", small)["fragments"] == 1
    assert document("log", small)["versions"][0]["message"] == "nightly"


def test_a_second_time_there_is_nothing_to_do(output: Output, small: Path) -> None:
    output("optimize", small)
    before = lance.dataset(small).version
    assert "nothing to do" in output("optimize", small)
    assert lance.dataset(small).version == before


def test_the_config_turns_it_off(document: Document, small: Path) -> None:
    lance.dataset(small).update_config({"lancelake.optimize.compact": "false"})
    body = document("optimize", small)
    assert body["compaction"] is None
    assert "compaction is turned off" in body["skipped"]
