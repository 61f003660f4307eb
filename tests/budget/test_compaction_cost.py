"""The cost of a second compaction depends on the added rows only."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.commit.snapshot import Snapshot
from lancelake.maintenance.compact.options import CompactionSettings
from lancelake.maintenance.compact.run import Compacted, compact
from lancelake.storage import disk_sync

ROWS = 20_000
WIDTH = 16
SHARE = 100
OPTIONS = CompactionSettings(target_rows_per_fragment=ROWS // 4)
SETTLED = CompactionSettings(settled_bytes=ROWS * WIDTH // 8)


def vectors(first: int, rows: int) -> pa.Table:
    values = pa.array(np.random.default_rng(first).random(rows * WIDTH, dtype=np.float32))
    ids = pa.array(np.arange(first, first + rows))
    return pa.table({"id": ids, "v": pa.FixedSizeListArray.from_arrays(values, WIDTH)})


def head(uri: str) -> Snapshot:
    return lance.dataset(uri)._snapshot


def grown(uri: Path, options: CompactionSettings) -> tuple[Compacted, Snapshot]:
    """Compact a table of small fragments, add one row in a hundred, and return both."""
    with disk_sync.waiting(waits=False):
        lance.write_dataset(vectors(0, ROWS), uri, max_rows_per_file=ROWS // 20)
        first = compact(head(str(uri)), options)
        for number in range(10):
            rows = vectors(ROWS + number, ROWS // SHARE // 10)
            lance.write_dataset(rows, uri, mode="append")
    return first, head(str(uri))


@pytest.mark.parametrize("options", [OPTIONS, SETTLED], ids=["full files", "settled files"])
def test_what_is_settled_is_neither_read_nor_written(
    options: CompactionSettings, tmp_path: Path
) -> None:
    uri = tmp_path / "t.lance"
    first, at = grown(uri, options)
    for fragment in first.snapshot.manifest.fragments:
        for file in fragment.files:
            (uri / "data" / file.path).unlink()
    second = compact(at, options)
    assert second.metrics.fragments_removed == 10
    moved, all_bytes = second.metrics, first.metrics
    assert moved.bytes_removed + moved.bytes_added < 0.05 * all_bytes.bytes_removed


def test_a_third_compaction_does_nothing(tmp_path: Path) -> None:
    _, at = grown(tmp_path / "t.lance", OPTIONS)
    second = compact(at, OPTIONS)
    assert compact(second.snapshot, OPTIONS).snapshot is second.snapshot


def test_many_small_additions_rewrite_each_row_few_times(tmp_path: Path) -> None:
    uri = tmp_path / "t.lance"
    written = 0
    with disk_sync.waiting(waits=False):
        for number in range(64):
            mode = "append" if number else "create"
            lance.write_dataset(vectors(number * 100, 100), uri, mode=mode)
            if number % 4 == 3:
                options = CompactionSettings(settled_bytes=1)
                written += compact(head(str(uri)), options).metrics.bytes_added
    size = sum(f.files[0].file_size_bytes or 0 for f in head(str(uri)).manifest.fragments)
    assert written < 6 * size
