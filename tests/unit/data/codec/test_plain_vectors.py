"""Vectors that are stored as they are in memory are read without the codec, and are the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from lance.file import LanceFileReader, LanceFileWriter

from lancelake.data.arrays.conform import column_ids
from lancelake.data.codec.lance_file import open_lance_columns
from lancelake.data.codec.workarounds import PlainVectors
from lancelake.data.column_reader import ColumnReader
from lancelake.errors import CorruptTableError
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.fragment import DataFile, FileVersion
from lancelake.storage.instrumented import IoAccount
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt

VERSION = FileVersion.V2_1
PAGES = (4000, 3000, 1)
DIMENSION = 128


def vectors(rows: int, kind: Any = np.float32, seed: int = 0) -> pa.Array:
    values = np.random.default_rng(seed).integers(0, 99, rows * DIMENSION).astype(kind)
    return pa.FixedSizeListArray.from_arrays(pa.array(values), DIMENSION)


def written(folder: Path, pages: list[pa.Array], version: FileVersion = VERSION) -> ColumnReader:
    """Write a file of two columns, the second of vectors with a page each, and open that."""
    path = folder / "x.lance"
    schema = pa.schema({"n": pa.int64(), "v": pages[0].type})
    writer = LanceFileWriter(str(path), schema, version=version.value, data_cache_bytes=1)
    for page in pages:
        numbers = pa.array(range(len(page)), pa.int64())
        writer.write_batch(pa.record_batch([numbers, page], schema=schema))
    writer.close()
    fields = from_arrow(schema)
    ids = column_ids(fields, version)
    major, minor = version.numbers
    file = DataFile(
        path=path.name,
        fields=ids,
        column_indices=tuple(range(len(ids))),
        file_major_version=major,
        file_minor_version=minor,
    )
    place = FileAt(root=Location.parse(folder), path=path.name)
    (reader,) = open_lance_columns(place, file, fields.fields[1:])
    return reader


def read(reader: ColumnReader, start: int, stop: int, batch_rows: int) -> list[pa.RecordBatch]:
    return list(reader.batches(start=start, stop=stop, batch_rows=batch_rows))


def is_plain(reader: ColumnReader) -> bool:
    return isinstance(reader, PlainVectors) and reader.pages() is not None


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int32])
@pytest.mark.parametrize("bounds", [(0, 7001), (17, 6999), (3999, 7000)])
@pytest.mark.parametrize("batch_rows", [1024, 4001, 10_000])
def test_rows_of_several_pages_are_those_that_the_codec_reads(
    tmp_path: Path, kind: Any, bounds: tuple[int, int], batch_rows: int
) -> None:
    pages = [vectors(rows, kind, seed) for seed, rows in enumerate(PAGES)]
    reader = written(tmp_path, pages)
    assert is_plain(reader)
    start, stop = bounds
    found = read(reader, start, stop, batch_rows)
    decoded = LanceFileReader(str(tmp_path / "x.lance"), columns=["v"])
    expected = decoded.read_range(start, stop - start).to_table()
    assert pa.Table.from_batches(found).combine_chunks() == expected.combine_chunks()
    assert {batch.num_rows for batch in found[:-1]} <= {batch_rows}
    for batch in found:
        batch.validate(full=True)


def with_nulls(rows: int, *, items: bool) -> pa.Array:
    whole = vectors(rows)
    if not items:
        return pa.array([None, *whole.to_pylist()[1:]], whole.type)
    values = whole.flatten().to_pylist()
    return pa.FixedSizeListArray.from_arrays(pa.array([None, *values[1:]], pa.float32()), DIMENSION)


@pytest.mark.parametrize(
    ("pages", "options"),
    [
        ([vectors(5000), with_nulls(5000, items=False)], {}),
        ([with_nulls(5000, items=True)], {}),
        ([vectors(9000)], {"version": FileVersion.V2_0}),
        ([pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(1 << 20, np.float32)), 2)], {}),
    ],
    ids=["null rows", "null values", "2.0", "mini-blocks"],
)
def test_other_pages_are_decoded(
    tmp_path: Path, pages: list[pa.Array], options: dict[str, Any]
) -> None:
    reader = written(tmp_path, pages, **options)
    assert not is_plain(reader)
    found = pa.Table.from_batches(read(reader, 0, reader.num_rows, 1000))
    expected = pa.chunked_array(pages)
    assert found.column(0).combine_chunks() == expected.combine_chunks()


def test_reads_are_accounted_once(tmp_path: Path) -> None:
    reader = written(tmp_path, [vectors(9000)])
    account = IoAccount()
    with account.active():
        read(reader, 100, 8500, 1000)
    assert [(r.rows, r.columns) for r in account.reads] == [(range(100, 8500), ("`v`",))]


def test_a_file_that_ends_early_is_refused(tmp_path: Path) -> None:
    reader = written(tmp_path, [vectors(9000)])
    assert is_plain(reader)
    path = tmp_path / "x.lance"
    path.write_bytes(path.read_bytes()[:100_000])
    with pytest.raises(CorruptTableError, match="ends within its values"):
        read(reader, 0, 9000, 1000)


def test_an_open_file_is_still_read_after_it_was_removed(tmp_path: Path) -> None:
    reader = written(tmp_path, [vectors(9000)])
    assert is_plain(reader)
    (tmp_path / "x.lance").unlink()
    assert sum(batch.num_rows for batch in read(reader, 0, 9000, 1000)) == 9000


@pytest.mark.parametrize("rows", [[0], [3999, 4000, 6999, 7000], [5, 6, 7, 4100]], ids=str)
def test_single_rows_are_those_that_the_codec_reads(tmp_path: Path, rows: list[int]) -> None:
    reader = written(tmp_path, [vectors(size, seed=seed) for seed, size in enumerate(PAGES)])
    assert isinstance(reader, PlainVectors)
    offsets = np.array(rows, dtype=np.uint64)
    assert reader.take(offsets) == reader.decoded.take(offsets)


def test_single_rows_are_read_without_the_codec(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = written(tmp_path, [vectors(size) for size in PAGES])
    assert isinstance(reader, PlainVectors)
    monkeypatch.setattr(type(reader.decoded), "take", None)
    assert reader.take(np.array([1, 4005], dtype=np.uint64)).num_rows == 2


def test_row_beyond_the_file_is_left_to_the_codec(tmp_path: Path) -> None:
    reader = written(tmp_path, [vectors(10)])
    with pytest.raises(CorruptTableError):
        reader.take(np.array([10], dtype=np.uint64))
