from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.engine import port
from lancelake.engine.port import Job
from lancelake.errors import CorruptTableError
from lancelake.format.memwal import wal_files
from lancelake.format.memwal.details import SPEC_ID
from lancelake.format.memwal.region_manifest import RegionManifest
from lancelake.memwal.merge import MergedRegions, merge_generations
from lancelake.memwal.region import details_of
from lancelake.memwal.setup import bucketed, initialize
from lancelake.memwal.table_writer import TableWriter
from lancelake.memwal.writer import RegionWriter
from tests.support.memwal_tables import INLINE, KEY, keys, newest, rows


class Elsewhere:
    """Runs every task as another process would: from its bytes."""

    parallelism = 3

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def run(self, job: Job) -> Iterator[bytes]:
        for task in job.tasks:
            data = port.dumps(task)
            result = port.loads(data).run()
            self.sizes.append(len(data) + len(result))
            yield result


def history(uri: Path, seed: int, *, stable: bool = False) -> None:
    """Write a table of several fragments, and generations in several regions."""
    chance = Random(seed)
    base = [(key, "base") for key in range(40)]
    lance.write_dataset(rows(*base), uri, max_rows_per_file=7, enable_stable_row_ids=stable)
    initialize(newest(uri), bucketed(newest(uri), "id", 4))
    with TableWriter(newest(uri), INLINE) as writer:
        for number in range(6):
            chosen = chance.sample(range(60), 12)
            writer.put(rows(*((key, f"put {number}") for key in chosen[:8])))
            writer.delete(keys(*chosen[8:]))
            if number % 2:
                writer.flush()


def both(uri: Path) -> tuple[MergedRegions, MergedRegions]:
    """Merge a table and its copy, here and by tasks."""
    copy = Path(shutil.copytree(uri, uri.with_name("copy")))
    return merge_generations(newest(uri)), merge_generations(newest(copy), engine=Elsewhere())


def content(made: MergedRegions, **options: bool) -> list[dict[str, object]]:
    found = lance.dataset(made.snapshot.location.uri).to_table(**options).to_pylist()
    return sorted(found, key=lambda row: row["id"])


@pytest.mark.parametrize("seed", range(6))
def test_tasks_merge_the_same_rows(seed: int, tmp_path: Path) -> None:
    history(tmp_path / "t", seed)
    here, elsewhere = both(tmp_path / "t")
    assert content(elsewhere) == content(here)
    assert elsewhere.counts == here.counts
    assert elsewhere.marks == here.marks
    assert details_of(elsewhere.snapshot).progress() == details_of(here.snapshot).progress()


@pytest.mark.parametrize("seed", range(3))
def test_replaced_rows_keep_their_stable_ids(seed: int, tmp_path: Path) -> None:
    history(tmp_path / "t", seed, stable=True)
    before = {row["id"]: row["_rowid"] for row in _with_ids(tmp_path / "t")}
    _, made = both(tmp_path / "t")
    after = {row["id"]: row["_rowid"] for row in _with_ids(made.snapshot.location.uri)}
    assert {key: after[key] for key in after.keys() & before.keys()} == {
        key: before[key] for key in after.keys() & before.keys()
    }
    assert len({*after.values()}) == len(after)


def _with_ids(uri: str | Path) -> list[dict[str, int]]:
    return lance.dataset(uri).to_table(columns=["id"], with_row_id=True).to_pylist()


def test_an_index_of_the_key_finds_the_rows(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    lance.write_dataset(rows(*((key, "base") for key in range(2_000))), uri)
    lance.dataset(uri).create_scalar_index("id", "BTREE")
    initialize(newest(uri), bucketed(newest(uri), "id", 2))
    with TableWriter(newest(uri), INLINE) as writer:
        writer.put(rows((5, "put"), (3_000, "put")))
        writer.delete(keys(7))
    here, elsewhere = both(uri)
    assert content(elsewhere) == content(here)
    assert elsewhere.counts == here.counts


def test_an_empty_table_takes_all_rows(tmp_path: Path) -> None:
    lance.write_dataset(rows(), tmp_path / "t")
    initialize(newest(tmp_path / "t"), bucketed(newest(tmp_path / "t"), "id", 2))
    with TableWriter(newest(tmp_path / "t"), INLINE) as writer:
        writer.put(rows((1, "put"), (2, "put")))
        writer.delete(keys(9))
    made = merge_generations(newest(tmp_path / "t"), engine=Elsewhere())
    assert content(made) == [{"id": 1, "name": "put"}, {"id": 2, "name": "put"}]


def test_keys_of_two_columns_are_matched(tmp_path: Path) -> None:
    position = "lance-schema:unenforced-primary-key:position"
    schema = pa.schema(
        [
            pa.field("a", pa.int64(), nullable=False, metadata={**KEY, position: "1"}),
            pa.field("b", pa.utf8(), nullable=False, metadata={**KEY, position: "2"}),
            pa.field("n", pa.int64()),
        ]
    )
    uri = tmp_path / "t"
    lance.write_dataset(pa.table([[1, 1, 2], ["x", "y", "x"], [0, 0, 0]], schema=schema), uri)
    initialize(newest(uri), bucketed(newest(uri), "a", 2))
    with TableWriter(newest(uri), INLINE) as writer:
        writer.put(pa.table([[1, 2], ["x", "y"], [7, 7]], schema=schema))
    made = merge_generations(newest(uri), engine=Elsewhere())
    found = lance.dataset(uri).to_table().to_pylist()
    assert sorted((row["a"], row["b"], row["n"]) for row in found) == [
        (1, "x", 7),
        (1, "y", 0),
        (2, "x", 0),
        (2, "y", 7),
    ]
    assert (made.counts.inserted, made.counts.updated) == (1, 1)


def test_a_key_in_two_regions_is_refused(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    lance.write_dataset(rows((1, "base")), uri)
    initialize(newest(uri), bucketed(newest(uri), "id", 2))
    for bucket in range(2):
        region = RegionManifest(region_id=wal_files.bucket_region(bucket), spec_id=SPEC_ID)
        with RegionWriter(newest(uri), region, options=INLINE) as writer:
            writer.put(rows((1, "twice")))
    with pytest.raises(CorruptTableError, match="more than one region"):
        merge_generations(newest(uri), engine=Elsewhere())


def test_rows_do_not_pass_the_driver(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    lance.write_dataset(rows((1, "base")), uri)
    initialize(newest(uri), bucketed(newest(uri), "id", 2))
    wide = "x" * 100_000
    with TableWriter(newest(uri), INLINE) as writer:
        writer.put(rows(*((key, wide) for key in range(50))))
    engine = Elsewhere()
    merge_generations(newest(uri), engine=engine)
    assert sum(engine.sizes) < 20 * len(wide)
