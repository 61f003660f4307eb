"""Switching automatic cleanup on and off."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.pylance.dataset import AutoCleanupConfig

ROWS = pa.table({"a": [1]})


def test_automatic_cleanup_is_enabled_and_disabled(tmp_path: Path) -> None:
    made = lance.write_dataset(ROWS, tmp_path)
    made.optimize.enable_auto_cleanup(AutoCleanupConfig(interval=3, older_than_seconds=60))
    assert made.config()["lance.auto_cleanup.interval"] == "3"
    made.optimize.disable_auto_cleanup()
    assert made.config() == {}


def test_unknown_arguments_are_refused(tmp_path: Path) -> None:
    made = lance.write_dataset(ROWS, tmp_path)
    with pytest.raises(TypeError, match="unexpected keyword argument 'x'"):
        made.optimize.disable_auto_cleanup(x=1)


def test_everything_worthwhile_is_done_in_one_call(tmp_path: Path) -> None:
    made = lance.write_dataset(ROWS, tmp_path)
    for _ in range(7):
        made.insert(ROWS)
    made.create_scalar_index("a", "BTREE")
    made.insert(ROWS)

    planned = made.optimize.all(dry_run=True)
    # A fragment that the index does not cover is not joined with others.
    assert planned["compaction"]["fragments_removed"] == 8
    assert made.version == lance.dataset(tmp_path).version

    done = made.optimize.all()
    assert len(made.get_fragments()) == 2
    assert made.version == lance.dataset(tmp_path).version > 9
    assert made.index_statistics("a_idx")["num_unindexed_rows"] == 0
    assert done["conflict"] is None
    assert made.optimize.all()["compaction"] is None
