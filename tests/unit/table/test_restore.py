"""Every version can be restored."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import lancelake.pylance as lance


def test_a_version_with_updated_rows_is_restored_after_a_compaction(tmp_path: Path) -> None:
    uri = tmp_path / "table.lance"
    rows = pa.table({"id": [1, 2, 3, 4], "value": [1, 2, 3, 4]})
    ds = lance.write_dataset(rows, uri, enable_stable_row_ids=True, max_rows_per_file=2)
    ds.update({"value": "0"}, where="id = 1", write_mode="rewrite_rows")
    updated = ds.version
    ds.optimize.compact_files()
    old = lance.dataset(uri, version=updated)
    old.restore()
    assert sorted(old.to_table()["value"].to_pylist()) == [0, 2, 3, 4]
