from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lancelake.errors import CorruptTableError
from lancelake.format.memwal import wal_files
from tests.support.memwal_tables import BUCKET, SIMPLE, TABLES

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False)])


@pytest.mark.parametrize("path", sorted(TABLES.glob("*/_mem_wal/*/wal/*.arrow")))
def test_official_entries_are_equal_after_they_are_written_again(path: Path) -> None:
    entry = wal_files.decode(path.read_bytes(), path=path.name)
    if entry.is_sentinel:
        data = wal_files.encode_sentinel(entry.writer_epoch)
    else:
        data = wal_files.encode(
            entry.batches[0].schema,
            entry.batches,
            writer_epoch=entry.writer_epoch,
            generation=entry.generation or 0,
        )
    assert wal_files.decode(data, path="again") == entry


def test_an_official_tombstone_is_read() -> None:
    path = wal_files.wal_entry(BUCKET, 3)
    entry = wal_files.decode((SIMPLE / path).read_bytes(), path=path)
    assert (entry.writer_epoch, entry.generation, entry.is_sentinel) == (1, 1, False)
    assert entry.batches[0].to_pylist() == [{"id": 2, "name": None, "_tombstone": True}]


def test_a_truncated_entry_is_refused() -> None:
    batch = pa.record_batch([[1, 2]], schema=SCHEMA)
    data = wal_files.encode(SCHEMA, [batch], writer_epoch=1, generation=1)
    with pytest.raises(CorruptTableError, match=r"WAL entry x\.arrow"):
        wal_files.decode(data[:-40], path="x.arrow")


def test_an_entry_without_an_epoch_is_refused() -> None:
    sink = pa.BufferOutputStream()
    pa.ipc.new_stream(sink, SCHEMA).close()
    with pytest.raises(CorruptTableError, match="has no writer epoch"):
        wal_files.decode(bytes(sink.getvalue()), path="x.arrow")


def _compressed(rows: int) -> bytes:
    sink = pa.BufferOutputStream()
    schema = SCHEMA.with_metadata({"writer_epoch": "1", "generation": "1"})
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    batch = pa.RecordBatch.from_arrays([pa.repeat(7, rows).cast(pa.int64())], schema=schema)
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        writer.write_batch(batch.slice(0, rows // 2))
        writer.write_batch(batch.slice(rows // 2))
    return bytes(sink.getvalue())


def test_a_compressed_entry_is_read() -> None:
    assert wal_files.decode(_compressed(100_000), path="entry").num_rows == 100_000


def test_an_entry_that_expands_beyond_reason_is_refused() -> None:
    with pytest.raises(CorruptTableError, match="claims 80000000 bytes"):
        wal_files.decode(_compressed(10_000_000), path="entry")
