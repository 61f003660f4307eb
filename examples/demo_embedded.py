"""Demo pipeline without Spark: write, upsert, SQL, search, MemWAL, compaction, time travel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from demo_official import opened_by_official

import lancelake

DIMENSIONS = 32
BATCH = 20_000
WORDS = ("harbour", "lighthouse", "mill", "street", "boat", "night", "snow", "bridge", "market")
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("caption", pa.string()),
        pa.field("embedding", pa.list_(pa.float32(), DIMENSIONS)),
    ]
)


class EmbeddedPipeline:
    """The steps, each of which does one thing to a table of photos."""

    def __init__(self, folder: Path, rows: int) -> None:
        """Prepare; nothing is written yet."""
        self.uri = str(folder / "photos.lance")
        self.rows = rows

    @property
    def table(self) -> lancelake.LanceDataset:
        """The newest version."""
        return lancelake.dataset(self.uri)

    def ingest(self) -> str:
        """Write photos in a stream of batches."""
        reader = pa.RecordBatchReader.from_batches(SCHEMA, photos(0, self.rows))
        found = lancelake.write_dataset(reader, self.uri, enable_stable_row_ids=True)
        return f"{found.count_rows():,} rows with captions and {DIMENSIONS}-dimensional embeddings"

    def upsert(self) -> str:
        """Replace some photos and add as many."""
        some = self.rows // 100
        rows = pa.Table.from_batches(list(photos(self.rows - some, self.rows + some)))
        merge = self.table.merge_insert("id").when_matched_update_all()
        done = merge.when_not_matched_insert_all().execute(rows)
        return f"{done['num_updated_rows']:,} updated, {done['num_inserted_rows']:,} inserted"

    def sql(self) -> str:
        """Count captions with SQL."""
        query = "SELECT count(*) AS n FROM dataset WHERE caption LIKE '%harbour%'"
        batch = self.table.sql(query).build().to_batch_records()[0]
        return f"{batch['n'][0].as_py():,} captions name the harbour"

    def text(self) -> str:
        """Index the captions, and search them."""
        table = self.table
        table.create_scalar_index("caption", "INVERTED")
        best = table.search("lighthouse night", k=1).to_pylist()[0]
        return f"best for 'lighthouse night': {best['caption']!r}"

    def vectors(self) -> str:
        """Index the embeddings, and find the neighbours of a photo."""
        table = self.table
        table.create_index("embedding", "IVF_FLAT", num_partitions=16)
        query = table.take([0], columns=["embedding"])["embedding"][0].as_py()
        nearest = {"column": "embedding", "q": query, "k": 3}
        found = table.to_table(columns=["id"], nearest=nearest)
        return f"nearest to photo 0: {found['id'].to_pylist()}"

    def wal(self) -> str:
        """Upsert through the write-ahead log, and merge it into the table."""
        table = self.table
        table.wal.initialize(buckets=2, key="id")
        with table.wal.writer() as writer:
            for start in range(0, 1000, 100):
                writer.put(next(photos(start, start + 100)))
        done = table.wal.merge()
        return f"10 durable upserts of 100 rows, then {done['num_updated_rows']:,} rows merged"

    def compact(self) -> str:
        """Join small files."""
        table = self.table
        before = len(table.get_fragments())
        table.optimize.compact_files()
        return f"{before} fragments became {len(self.table.get_fragments())}"

    def travel(self) -> str:
        """Count the rows of the first version and of the newest."""
        first = lancelake.dataset(self.uri, version=1).count_rows()
        return f"version 1: {first:,} rows; now: {self.table.count_rows():,}"

    def official(self) -> str:
        """Let official Lance open the table, in a process that knows nothing of us."""
        return opened_by_official(self.uri)

    def steps(self) -> list[tuple[str, Callable[[], str]]]:
        """Return the steps in their order."""
        return [
            ("ingest", self.ingest),
            ("upsert", self.upsert),
            ("SQL", self.sql),
            ("text search", self.text),
            ("vector search", self.vectors),
            ("MemWAL", self.wal),
            ("compaction", self.compact),
            ("time travel", self.travel),
            ("official Lance", self.official),
        ]


def photos(start: int, stop: int) -> Iterator[pa.RecordBatch]:
    """Yield photos, the same for the same ids within one call."""
    chance = np.random.default_rng(start)
    for first in range(start, stop, BATCH):
        ids = np.arange(first, min(first + BATCH, stop))
        picks = chance.integers(0, len(WORDS), (len(ids), 3))
        captions = [" ".join(WORDS[i] for i in row) for row in picks]
        values = chance.random(len(ids) * DIMENSIONS, dtype=np.float32)
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(values), DIMENSIONS)
        yield pa.RecordBatch.from_arrays(
            [pa.array(ids), pa.array(captions), vectors], schema=SCHEMA
        )
