"""MemWAL regions that pylance 14.0.2 and this library write, continue, read and merge in turn."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import UnsupportedError, WriterFencedError
from lancelake.format.ids import FieldId
from lancelake.format.memwal import wal_keys
from lancelake.format.memwal.details import Bucketed, Unsharded
from lancelake.memwal.collect import collect_garbage
from lancelake.memwal.generations import open_generation, read_generation
from lancelake.memwal.merge import merge_generations
from lancelake.memwal.region import RegionFiles, details_of
from lancelake.memwal.setup import bucketed, initialize
from lancelake.memwal.shape import RowShape
from lancelake.memwal.view import Freshness, open_view, unmerged_generations
from lancelake.memwal.writer import RegionWriter
from lancelake.storage import disk_sync
from tests.support.memwal_tables import (
    INLINE,
    KEY,
    NEW_REGION,
    REGION,
    keys,
    new_table,
    newest,
    rows,
    seen,
    writer,
)
from tests.support.official import Official

Rows = dict[int, str | None]
SEEDS = range(6)
STEPS = 14
KEYS = 10

WRITE = """
import pyarrow as pa
ds = lance.dataset(uri)
writer = ds.mem_wal_writer(region)
for kind, data in changes:
    if kind == "put":
        writer.put(pa.table([[k for k, _ in data], [v for _, v in data]], schema=ds.schema))
    else:
        writer.delete(pa.table([data], schema=pa.schema([ds.schema.field("id")])))
if closes:
    writer.close()
result = None
"""
READ = """
from lance.mem_wal import LsmScanner, ShardSnapshot
ds = lance.dataset(uri)
snapshot = ShardSnapshot(region)
for generation, path in generations:
    snapshot = snapshot.with_sstable(generation, path)
snapshot = snapshot.with_current_generation(current)
result = LsmScanner.from_snapshots(ds, [snapshot]).to_table().to_pylist()
"""
MERGE = """
import pyarrow as pa
from lance.mem_wal import CompactedSsTable
ds = lance.dataset(uri)
if deleted:
    ds.delete(f"id IN ({', '.join(map(str, deleted))})")
upsert = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
upsert = upsert.mark_sstables_as_compacted([CompactedSsTable(region, generation)])
upsert.execute(pa.table([[k for k, _ in kept], [v for _, v in kept]], schema=ds.schema))
result = None
"""
REFUSED = """
ds = lance.dataset(uri)
try:
    ds.mem_wal_writer(region)
    result = "opened"
except Exception as error:
    result = str(error)
"""
BUCKETS = """
import pyarrow as pa
from lance.mem_wal import ShardingField, ShardingSpec, evaluate_sharding_spec
ds = lance.dataset(uri)
field = ShardingField("bucket", [0], "bucket", None, "int32", {"num_buckets": str(count)})
batch = ds.to_table().combine_chunks().to_batches()[0]
found = evaluate_sharding_spec(batch, ShardingSpec(1, [field]), ds.lance_schema)
result = found.column(0).to_pylist()
"""
VALUES = [
    pa.array([0, 1, -1, 127, None], pa.int8()),
    pa.array([0, 1, 65535, None], pa.uint16()),
    pa.array([0, 1, -1, 2**31 - 1, -(2**31)], pa.int32()),
    pa.array([0, 1, -1, 2**63 - 1, -(2**63), None], pa.int64()),
    pa.array([0, 2**64 - 1], pa.uint64()),
    pa.array([True, False, None]),
    pa.array([0.0, -0.0, float("nan"), 1.5, None], pa.float32()),
    pa.array([0.0, -0.0, float("nan"), -1.5], pa.float64()),
    pa.array(["", "a", "ab", "abc", "abcd", "abcde", "é€😀", None]),
    pa.array(["x" * n for n in range(9)], pa.large_string()),
    pa.array([0, -1, 20000], pa.date32()),
    pa.array([0, -1, 1 << 40], pa.timestamp("us")),
]


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Nothing crashes here."""
    with disk_sync.waiting(waits=False):
        yield


def _official_rows(official: Official, uri: Path) -> Rows:
    """Return the rows that the release sees without the WAL."""
    manifest = RegionFiles.at(newest(uri).location, REGION).latest()
    progress = details_of(newest(uri)).progress().get(REGION, 0)
    generations = [] if manifest is None else unmerged_generations(manifest, progress)
    found = official.run(
        uri,
        READ,
        region=str(REGION),
        generations=[(g.generation, g.path) for g in generations],
        current=1 if manifest is None else manifest.current_generation,
    )
    by_key = {row["id"]: row["name"] for row in found}
    assert len(by_key) == len(found)
    return by_key


class Turns:
    """A table whose region both libraries change in turn, and what it should have."""

    def __init__(self, uri: Path, official: Official, seed: int) -> None:
        self.uri, self.official, self.chance = uri, official, random.Random(seed)
        self.durable: Rows = dict.fromkeys(range(KEYS // 2), "base")
        self.flushed = dict(self.durable)
        new_table(uri, *self.durable.items())
        self.written = 0

    def changes(self) -> list[tuple[str, list[object]]]:
        made: list[tuple[str, list[object]]] = []
        for _ in range(self.chance.randint(1, 3)):
            chosen = self.chance.sample(range(KEYS), self.chance.randint(1, 3))
            self.written += 1
            if self.chance.random() < 0.3:
                made.append(("delete", [*chosen]))
                self.durable = {k: v for k, v in self.durable.items() if k not in chosen}
            else:
                pairs = [(key, str(self.written)) for key in chosen]
                made.append(("put", [*pairs]))
                self.durable |= dict(pairs)
        return made

    def step(self) -> None:
        closes = self.chance.random() < 0.6
        steps = [self.ours, self.theirs, self.merge, self.their_merge, self.collect]
        self.chance.choice(steps)(closes=closes)

    def ours(self, *, closes: bool) -> None:
        mine = writer(newest(self.uri))
        for kind, data in self.changes():
            mine.put(rows(*data)) if kind == "put" else mine.delete(keys(*data))  # type: ignore[arg-type]
        if closes:
            mine.close()
            self.flushed = dict(self.durable)

    def theirs(self, *, closes: bool) -> None:
        made = self.changes()
        self.official.run(self.uri, WRITE, region=str(REGION), changes=made, closes=closes)
        if closes:
            self.flushed = dict(self.durable)

    def merge(self, *, closes: bool) -> None:
        merge_generations(newest(self.uri))

    def their_merge(self, *, closes: bool) -> None:
        """Merge the first generation as the release does: deletes, then upserts with the mark."""
        base = newest(self.uri)
        manifest = RegionFiles.at(base.location, REGION).latest()
        progress = details_of(base).progress().get(REGION, 0)
        for generation in unmerged_generations(manifest, progress)[:1] if manifest else ():
            opened = open_generation(base.location, REGION, generation)
            batches = read_generation(opened, RowShape.of(base))
            found = [row for batch in batches for row in batch.to_pylist()]
            self.official.run(
                self.uri,
                MERGE,
                region=str(REGION),
                generation=generation.generation,
                deleted=[row["id"] for row in found if row["_tombstone"]],
                kept=[(row["id"], row["name"]) for row in found if not row["_tombstone"]],
            )

    def collect(self, *, closes: bool) -> None:
        collect_garbage(newest(self.uri), older_than=timedelta(0))

    def check(self) -> None:
        now = newest(self.uri)
        assert seen(now, Freshness.DURABLE) == self.durable
        assert seen(now, Freshness.FLUSHED) == self.flushed
        assert _official_rows(self.official, self.uri) == self.flushed


@pytest.mark.parametrize("seed", SEEDS)
def test_a_region_is_written_in_turn(seed: int, tmp_path: Path, official_14: Official) -> None:
    turns = Turns(tmp_path / "t", official_14, seed)
    for _ in range(STEPS):
        turns.step()
        turns.check()


def test_a_mem_wal_that_the_release_initialized_is_continued(
    tmp_path: Path, official_14: Official
) -> None:
    uri = tmp_path / "t"
    official_14.write(uri, rows((1, "base"), (2, "base")))
    official_14.run(uri, "lance.dataset(uri).initialize_mem_wal(unsharded=True); result = None")
    base = newest(uri)
    assert details_of(base).spec() == Unsharded()
    with writer(base) as mine:
        mine.put(rows((1, "ours")))
    merge_generations(base)
    assert official_14.read(uri).sort_by("id").to_pylist() == [
        {"id": 1, "name": "ours"},
        {"id": 2, "name": "base"},
    ]


def test_a_sealed_region_is_refused_by_the_release(tmp_path: Path, official_14: Official) -> None:
    writer(new_table(tmp_path / "t", (1, "base"))).seal()
    assert "seal" in official_14.run(tmp_path / "t", REFUSED, region=str(REGION)).lower()


def test_a_key_of_two_columns_is_read_by_the_release(tmp_path: Path, official_14: Official) -> None:
    position = "lance-schema:unenforced-primary-key:position"
    schema = pa.schema(
        [
            pa.field("value", pa.float64()),
            pa.field("city", pa.utf8(), nullable=False, metadata={**KEY, position: "1"}),
            pa.field("day", pa.int32(), nullable=False, metadata={**KEY, position: "2"}),
        ]
    )
    lance.write_dataset(pa.table([[0.5], ["Bern"], [1]], schema=schema), tmp_path / "t")
    base = initialize(newest(tmp_path / "t"), Unsharded())
    with RegionWriter(base, NEW_REGION, options=INLINE) as mine:
        mine.put(pa.table([[1.5, 2.5, 3.5], ["Bern", "Rome", "a\0b"], [1, -7, 0]], schema=schema))
    manifest = RegionFiles.at(base.location, REGION).latest()
    assert manifest is not None
    (made,) = manifest.generations
    inputs = {"generations": [(1, made.path)], "current": 2}
    found = official_14.run(tmp_path / "t", READ, region=str(REGION), **inputs)
    expected = open_view(base, Freshness.FLUSHED).to_table().to_pylist()
    assert sorted(r["value"] for r in found) == sorted(r["value"] for r in expected)
    assert len(found) == 3


@pytest.mark.parametrize("values", VALUES, ids=lambda values: str(values.type))
def test_buckets_are_those_of_the_release(
    values: pa.Array, tmp_path: Path, official_14: Official
) -> None:
    official_14.write(tmp_path / "t", pa.table({"v": values}))
    expected = official_14.run(tmp_path / "t", BUCKETS, count=1000)
    assert wal_keys.buckets(values, 1000).tolist() == expected


def test_official_4_works_beside_a_mem_wal(tmp_path: Path, official_4: Official) -> None:
    uri = tmp_path / "t"
    base = new_table(uri, (1, "base"), (2, "base"))
    mine = writer(base)
    mine.put(rows((1, "ours")))
    mine.flush()
    official_4.append(uri, rows((3, "theirs")))
    official_4.delete(uri, "id = 2")
    assert details_of(newest(uri)).spec() == Bucketed(column=FieldId(0), buckets=1)
    merge_generations(newest(uri))
    expected = [{"id": 1, "name": "ours"}, {"id": 3, "name": "theirs"}]
    assert official_4.read(uri).sort_by("id").to_pylist() == expected


NEIGHBOUR = """
import pyarrow as pa
from datetime import timedelta
ds = lance.dataset(uri)
ds.create_scalar_index("id", "BTREE")
row = pa.table([[4], ["theirs"]], schema=ds.schema)
ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(row)
ds.update({"name": "'updated'"}, where="id = 3")
ds.optimize.optimize_indices()
ds.optimize.compact_files(defer_index_remap=True)
ds.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
result = sorted((r["id"], r["name"]) for r in lance.dataset(uri).to_table().to_pylist())
"""


def test_official_4_maintains_a_table_with_a_mem_wal(tmp_path: Path, official_4: Official) -> None:
    uri = tmp_path / "t"
    base = new_table(uri, (1, "base"), (2, "base"), (3, "base"))
    mine = writer(base)
    mine.put(rows((1, "merged")))
    mine.flush()
    merge_generations(newest(uri))
    mine.put(rows((2, "flushed")))
    mine.flush()
    mine.put(rows((5, "tail")))
    before = details_of(newest(uri)).progress()
    found = official_4.run(uri, NEIGHBOUR)
    assert [tuple(row) for row in found] == [
        (1, "merged"),
        (2, "base"),
        (3, "updated"),
        (4, "theirs"),
    ]
    assert details_of(newest(uri)).progress() == before
    expected = {1: "merged", 2: "flushed", 3: "updated", 4: "theirs", 5: "tail"}
    assert seen(newest(uri)) == expected
    mine.close()
    merge_generations(newest(uri))
    assert seen(newest(uri), Freshness.BASE) == expected


AGAIN = """
lance.dataset(uri).create_scalar_index("name", "BTREE", name="name_idx", replace=True)
result = None
"""


def test_index_coverage_is_recorded_as_by_the_release(
    tmp_path: Path, official_14: Official
) -> None:
    uri = tmp_path / "t"
    with writer(new_table(uri, (1, "base"))) as mine:
        mine.put(rows((2, "new")))
    merge_generations(newest(uri))
    lance.dataset(uri).create_scalar_index("name", "BTREE")
    ours = details_of(newest(uri)).index_catchup
    official_14.run(uri, AGAIN)
    assert details_of(newest(uri)).index_catchup == ours
    assert [c.index_name for c in ours] == ["name_idx"]


def test_a_restored_table_is_continued_by_the_release(
    tmp_path: Path, official_14: Official
) -> None:
    uri = tmp_path / "t"
    mine = writer(new_table(uri, (1, "base")))
    mine.put(rows((1, "merged")))
    mine.flush()
    merge_generations(newest(uri))
    lance.dataset(uri, version=2).restore()
    changes = [("put", [(2, "theirs")])]
    official_14.run(uri, WRITE, region=str(REGION), changes=changes, closes=True)
    assert seen(newest(uri)) == {1: "base", 2: "theirs"}
    assert _official_rows(official_14, uri) == {1: "base", 2: "theirs"}
    merge_generations(newest(uri))
    assert seen(newest(uri), Freshness.BASE) == {1: "base", 2: "theirs"}


def test_retired_regions_are_continued_by_the_release(
    tmp_path: Path, official_14: Official
) -> None:
    uri = tmp_path / "t"
    mine = writer(new_table(uri, (1, "base")))
    mine.put(rows((1, "merged")))
    mine.flush()
    merge_generations(newest(uri))
    mine.put(rows((7, "discarded")))
    lance.write_dataset(rows((9, "new")), uri, mode="overwrite")
    base = newest(uri)
    initialize(base, bucketed(base, "id", 1))
    changes = [("put", [(2, "theirs")])]
    official_14.run(uri, WRITE, region=str(REGION), changes=changes, closes=True)
    assert seen(newest(uri)) == {9: "new", 2: "theirs"}
    assert _official_rows(official_14, uri) == {9: "new", 2: "theirs"}


def test_a_table_that_the_release_has_overwritten_gets_a_new_mem_wal(
    tmp_path: Path, official_14: Official
) -> None:
    uri = tmp_path / "t"
    mine = writer(new_table(uri, (1, "base")))
    mine.put(rows((1, "merged")))
    mine.flush()
    merge_generations(newest(uri))
    mine.put(rows((2, "tail")))
    overwrite = "lance.write_dataset(lance.dataset(uri).to_table(), uri, mode='overwrite')"
    official_14.run(uri, overwrite)
    with pytest.raises(WriterFencedError):
        mine.flush()
    base = newest(uri)
    initialize(base, bucketed(base, "id", 1))
    assert seen(newest(uri)) == {1: "merged"}
    changes = [("put", [(3, "theirs")])]
    official_14.run(uri, WRITE, region=str(REGION), changes=changes, closes=True)
    assert seen(newest(uri)) == {1: "merged", 3: "theirs"}
    assert _official_rows(official_14, uri) == {1: "merged", 3: "theirs"}


def test_details_are_stored_as_the_official_release_stores_them(
    tmp_path: Path, official_14: Official
) -> None:
    initialize_code = """
ds = lance.dataset(uri)
ds.initialize_mem_wal(**options)
result = ds.mem_wal_index_details()
"""
    read = "result = lance.dataset(uri).mem_wal_index_details()"
    choices = (
        {"bucket_column": "id", "num_buckets": 3, "max_memtable_rows": 5, "durable_write": False},
        {"identity_column": "id", "maintained_indexes": []},
        {"unsharded": True},
        {},
    )
    for number, options in enumerate(choices):
        lance.write_dataset(rows((1, "a")), tmp_path / f"theirs{number}")
        ours = lance.write_dataset(rows((1, "a")), tmp_path / f"ours{number}")
        theirs = official_14.run(
            str(tmp_path / f"theirs{number}"), initialize_code, options=options
        )
        ours.initialize_mem_wal(**options)
        assert ours.mem_wal_index_details() == theirs
        assert official_14.run(str(tmp_path / f"ours{number}"), read) == theirs


def test_bytes_are_not_divided_into_buckets_by_the_official_release_either(
    tmp_path: Path, official_14: Official
) -> None:
    code = """
try:
    lance.dataset(uri).initialize_mem_wal(bucket_column="id", num_buckets=3)
    result = "initialized"
except OSError as error:
    result = "cannot be used as a shard key" in str(error)
"""
    found = {}
    for kind in (pa.binary(), pa.large_binary(), pa.string(), pa.int16(), pa.bool_()):
        metadata = {"lance-schema:unenforced-primary-key": "true"}
        schema = pa.schema([pa.field("id", kind, nullable=False, metadata=metadata)])
        for release in ("theirs", "ours"):
            lance.write_dataset(schema.empty_table(), tmp_path / f"{release}-{kind}")
        theirs = official_14.run(str(tmp_path / f"theirs-{kind}"), code) is True
        ours = False
        try:
            lance.dataset(tmp_path / f"ours-{kind}").initialize_mem_wal(
                bucket_column="id", num_buckets=3
            )
        except UnsupportedError:
            ours = True
        found[str(kind)] = (theirs, ours)
    refused = {name for name, (theirs, _) in found.items() if theirs}
    assert refused == {name for name, (_, ours) in found.items() if ours}
    assert refused == {"binary", "large_binary"}
