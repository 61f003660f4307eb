"""Tables with a MemWAL: new ones, and those that tests/golden/memwal/make.py wrote."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa

import lancelake.pylance as lance
from lancelake.commit.snapshot import Latest, Snapshot, open_snapshot
from lancelake.format.index_meta import MEM_WAL
from lancelake.format.memwal import wal_files
from lancelake.format.memwal.details import SPEC_ID
from lancelake.format.memwal.region_manifest import RegionManifest
from lancelake.format.operations import CreateIndex
from lancelake.memwal.setup import bucketed, initialize
from lancelake.memwal.view import Freshness, open_view
from lancelake.memwal.writer import RegionWriter, WriterOptions
from lancelake.storage.location import Location, Session
from lancelake.table.publish import CommitChoices, new_transaction, publish

TABLES = Path(__file__).resolve().parents[1] / "golden" / "memwal" / "tables"
SIMPLE, COMPOSITE = TABLES / "simple", TABLES / "composite"
CAUGHT_UP = TABLES / "caught_up"
BUCKET = uuid.UUID("4a388480-a25b-59a8-b058-24217f980256")
UNSHARDED = uuid.UUID("aa48498d-ac91-59e2-8452-69f46010ace2")


def generation_dir(table: Path, generation: int) -> Path:
    """Return the folder of a generation of the table's only region."""
    (found,) = table.glob(f"_mem_wal/*/*_gen_{generation}")
    return found


KEY = {"lance-schema:unenforced-primary-key": "true"}
SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False, metadata=KEY), pa.field("name", pa.utf8())]
)
REGION = wal_files.bucket_region(0)
NEW_REGION = RegionManifest(region_id=REGION, spec_id=SPEC_ID)
INLINE = WriterOptions(flushes_in_background=False)


def rows(*pairs: tuple[int, str | None]) -> pa.Table:
    """Return rows of `SCHEMA`."""
    return pa.table([[key for key, _ in pairs], [name for _, name in pairs]], schema=SCHEMA)


def keys(*wanted: int) -> pa.Table:
    """Return keys of `SCHEMA`."""
    return pa.table([list(wanted)], schema=pa.schema([SCHEMA.field("id")]))


def new_table(uri: str | Path, *pairs: tuple[int, str | None]) -> Snapshot:
    """Write a table of `SCHEMA` with a MemWAL of one bucket."""
    lance.write_dataset(rows(*pairs), uri)
    base = newest(uri)
    return initialize(base, bucketed(base, "id", 1))


def newest(uri: str | Path, session: Session | None = None) -> Snapshot:
    """Open the newest version."""
    return open_snapshot(Location.parse(uri, session=session), Latest())


def writer(base: Snapshot, options: WriterOptions = INLINE) -> RegionWriter:
    """Open the writer of the only region."""
    return RegionWriter(base, NEW_REGION, options=options)


def seen(
    base: Snapshot,
    freshness: Freshness = Freshness.DURABLE,
    writers: dict[uuid.UUID, RegionWriter] | None = None,
) -> dict[int, str | None]:
    """Return the rows of a view by key; a key that it has twice fails."""
    found = open_view(base, freshness, writers).to_table().to_pylist()
    by_key = {row["id"]: row["name"] for row in found}
    assert len(by_key) == len(found)
    return by_key


def end_without_retirement(uri: str | Path) -> None:
    """Remove the MemWAL as another program may: the entry goes, the regions stay."""
    base = newest(uri)
    (entry,) = [index for index in base.indices if index.name == MEM_WAL]
    choices = CommitChoices(after=())
    gone = CreateIndex(new_indices=(), removed_indices=(entry,))
    publish(base, new_transaction(gone, base.version, choices), choices)


def with_wal(path: Path, *pairs: tuple[int, str | None], buckets: int = 4) -> lance.LanceDataset:
    """Write a table with a MemWAL."""
    ds = lance.write_dataset(rows(*pairs), path)
    ds.wal.initialize(buckets=buckets)
    return ds


def by_key(found: pa.Table) -> dict[int, str | None]:
    """Return names by key; every key occurs once."""
    names = {row["id"]: row["name"] for row in found.to_pylist()}
    assert len(names) == found.num_rows
    return names
