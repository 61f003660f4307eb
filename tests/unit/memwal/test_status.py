from __future__ import annotations

import shutil
from pathlib import Path

from lancelake.memwal.merge import merge_generations
from lancelake.memwal.status import wal_status
from tests.support.memwal_tables import BUCKET, REGION, SIMPLE, new_table, newest, rows, writer


def test_merged_flushed_and_other_rows_are_counted(tmp_path: Path) -> None:
    base = new_table(tmp_path / "t", (1, "base"))
    mine = writer(base)
    for turn in range(3):
        mine.put(rows((1, f"{turn}"), (2, "x")))
        if turn < 2:
            mine.flush()
        if turn < 1:
            merge_generations(newest(tmp_path / "t"))
    (found,) = wal_status(newest(tmp_path / "t")).regions
    assert (found.region, found.merged_generation) == (REGION, 1)
    assert [g.generation for g in found.unmerged] == [2]
    assert (found.flushed_rows, found.tail_entries, found.tail_rows) == (2, 1, 2)


def test_a_region_of_an_official_release(tmp_path: Path) -> None:
    shutil.copytree(SIMPLE, tmp_path / "t")
    (found,) = wal_status(newest(tmp_path / "t")).regions
    assert (found.region, found.merged_generation) == (BUCKET, 1)
    assert (found.tail_entries, found.tail_rows) == (2, 3)
