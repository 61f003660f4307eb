"""Index files: small batches are written together, and every row is there."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lancelake.data.codec import index_file, official
from lancelake.data.codec.index_file import SegmentFolder
from lancelake.data.codec.official import file_writer
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt

SCHEMA = pa.schema([("a", pa.int64()), ("t", pa.string())])


def _folder(root: Path) -> SegmentFolder:
    return SegmentFolder(place=FileAt(root=Location.parse(root), path="_indices/x"))


def _batch(first: int, count: int) -> pa.RecordBatch:
    numbers = range(first, first + count)
    return pa.record_batch({"a": list(numbers), "t": [f"text {n}" for n in numbers]}, SCHEMA)


@pytest.mark.parametrize("page_bytes", [1, 200, 8 << 20])
def test_all_rows_are_written_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page_bytes: int
) -> None:
    monkeypatch.setattr(index_file, "_PAGE_BYTES", page_bytes)
    folder = _folder(tmp_path)
    writer = folder.create("f.lance", SCHEMA)
    for first in range(0, 100, 10):
        writer.write(_batch(first, 10))
    entry = writer.finish({"k": "v"})
    found = folder.open("f.lance")
    assert found.read().equals(pa.Table.from_batches([_batch(0, 100)]))
    assert found.metadata["k"] == "v"
    assert entry.size_bytes == (tmp_path / "_indices/x/f.lance").stat().st_size


def test_the_codec_gets_few_large_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    real = file_writer

    class Counted:
        def __init__(self, *args: object, **options: object) -> None:
            self._codec = real(*args, **options)

        def write_batch(self, batch: pa.RecordBatch) -> None:
            written.append(batch.num_rows)
            self._codec.write_batch(batch)

        def __getattr__(self, name: str) -> object:
            return getattr(self._codec, name)

    monkeypatch.setattr(official, "file_writer", Counted)
    monkeypatch.setattr(index_file, "_PAGE_BYTES", 400)
    writer = _folder(tmp_path).create("f.lance", SCHEMA)
    for first in range(0, 100, 10):
        writer.write(_batch(first, 10))
    writer.finish()
    assert sum(written) == 100
    assert len(written) < 6


def test_a_file_without_rows_has_its_schema(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    folder.create("f.lance", SCHEMA).finish()
    found = folder.open("f.lance")
    assert (found.num_rows, found.schema.names) == (0, ["a", "t"])
