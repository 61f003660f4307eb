from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.commit.snapshot import Snapshot
from lancelake.errors import WriterFencedError
from lancelake.memwal.merge import merge_generations
from lancelake.memwal.region import RegionFiles, list_regions
from lancelake.memwal.setup import bucketed, initialize
from lancelake.memwal.table_writer import TableWriter
from lancelake.memwal.view import Freshness
from tests.support.memwal_tables import CAUGHT_UP, INLINE, keys, newest, rows, seen


@pytest.fixture
def base(tmp_path: Path) -> Snapshot:
    lance.write_dataset(rows(*((k, "base") for k in range(10))), tmp_path / "t")
    at = newest(tmp_path / "t")
    return initialize(at, bucketed(at, "id", 4))


def test_rows_go_to_the_regions_of_their_keys(base: Snapshot) -> None:
    with TableWriter(base, INLINE) as mine:
        mine.put(rows(*((k, "new") for k in range(5, 20))))
        mine.delete(keys(0, 19))
        expected = dict.fromkeys(range(1, 5), "base") | dict.fromkeys(range(5, 19), "new")
        assert seen(base) == seen(base, writers=mine.writers) == expected
    assert len(list_regions(base.location)) == 4
    made = merge_generations(base)
    assert len(made.marks) == 4
    assert made.snapshot.version == base.version + 1
    assert seen(made.snapshot, Freshness.BASE) == expected


def test_a_region_records_the_bucket_of_its_rows(base: Snapshot) -> None:
    with TableWriter(base, INLINE) as mine:
        mine.put(rows((1, "new")))
    (region,) = list_regions(base.location)
    manifest = RegionFiles.at(base.location, region).latest()
    assert manifest is not None
    assert (manifest.spec_id, manifest.field_values[0][0]) == (1, "bucket")


def test_threads_share_a_writer(base: Snapshot) -> None:
    with TableWriter(base, INLINE) as mine, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda k: mine.put(rows((k, "t"))), range(100, 164)))
    assert {k: v for k, v in seen(base).items() if k >= 100} == dict.fromkeys(range(100, 164), "t")


def test_a_replaced_writer_is_reported_after_all_have_stopped(base: Snapshot) -> None:
    old = TableWriter(base, INLINE)
    old.put(rows(*((k, "old") for k in range(8))))
    new = TableWriter(base, INLINE)
    new.put(rows(*((k, "new") for k in range(8))))
    with pytest.raises(WriterFencedError):
        old.close()
    new.close()
    assert seen(base)[3] == "new"


def test_regions_of_values_of_an_official_release_are_continued(tmp_path: Path) -> None:
    uri = shutil.copytree(CAUGHT_UP, tmp_path / "t")
    schema = lance.dataset(uri).schema
    with TableWriter(newest(uri), INLINE) as mine:
        mine.put(pa.table([["Bern", "Rome", "Oslo"], [3, 3, 3]], schema=schema))
        assert {w.epoch for w in mine.writers.values()} == {1, 2}
    merge_generations(newest(uri))
    found = {row["city"]: row["value"] for row in lance.dataset(uri).to_table().to_pylist()}
    assert found == {"Bern": 3, "Rome": 3, "Oslo": 3}
