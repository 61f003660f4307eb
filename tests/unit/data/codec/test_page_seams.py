"""Pages whose structs differ in nulls are read in parts, with the same result."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lance.file import LanceFileReader, LanceFileWriter

from lancelake.data.arrays.conform import column_ids
from lancelake.data.codec.lance_file import open_lance_columns
from lancelake.data.column_reader import ColumnReader
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.fragment import DataFile, FileVersion
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt

LISTS = pa.struct({"x": pa.list_(pa.int8())})
NESTED = pa.struct({"x": LISTS, "y": pa.list_(pa.list_(pa.int8()))})
IN_LISTS = pa.list_(pa.struct({"x": pa.list_(pa.int8()), "y": pa.int8()}))
VALID = [{"x": [1]}, {"x": [2, 3]}]
WITH_NULL = [{"x": [1]}, None]

Rows = list[object]


def _written(folder: Path, dtype: pa.DataType, pages: list[Rows]) -> Path:
    path = folder / "x.lance"
    schema = pa.schema({"a": dtype})
    writer = LanceFileWriter(str(path), schema, version="2.1", data_cache_bytes=1)
    for rows in pages:
        writer.write_batch(pa.record_batch([pa.array(rows, dtype)], schema=schema))
    writer.close()
    return path


def _opened(path: Path, dtype: pa.DataType) -> ColumnReader:
    schema = from_arrow(pa.schema({"a": dtype}))
    ids = column_ids(schema, FileVersion.V2_1)
    file = DataFile(
        path=path.name,
        fields=ids,
        column_indices=tuple(range(len(ids))),
        file_major_version=2,
        file_minor_version=1,
    )
    place = FileAt(root=Location.parse(path.parent), path=path.name)
    (reader,) = open_lance_columns(place, file, schema.fields)
    return reader


def _values(dtype: pa.DataType, *, nulls: st.SearchStrategy[bool]) -> st.SearchStrategy[object]:
    """Values of a type; the types that have nulls are drawn once for a page."""
    if pa.types.is_struct(dtype):
        members = {f.name: _values(f.type, nulls=nulls) for f in dtype}
        value: st.SearchStrategy[object] = st.fixed_dictionaries(members)
    elif pa.types.is_list(dtype):
        value = st.lists(_values(dtype.value_type, nulls=nulls), max_size=2)
    else:
        value = st.integers(0, 9)
    return nulls.flatmap(lambda some: st.none() | value if some else value)


@st.composite
def _pages(draw: st.DrawFn, dtype: pa.DataType) -> list[Rows]:
    pages = draw(st.integers(2, 4))
    return [
        draw(st.lists(_values(dtype, nulls=st.just(draw(st.booleans()))), min_size=1, max_size=4))
        for _ in range(pages)
    ]


def test_codec_fails_across_these_pages(tmp_path: Path) -> None:
    path = _written(tmp_path, LISTS, [VALID, WITH_NULL])
    with pytest.raises(pa.ArrowInvalid, match="Incorrect number of nulls"):
        LanceFileReader(str(path)).read_all().to_table()


@pytest.mark.parametrize("pages", [[VALID, WITH_NULL], [WITH_NULL, VALID], [VALID, [None, None]]])
def test_rows_of_all_pages_come_in_one_batch(tmp_path: Path, pages: list[Rows]) -> None:
    reader = _opened(_written(tmp_path, LISTS, pages), LISTS)
    (batch,) = reader.batches(start=0, stop=4, batch_rows=100)
    assert batch.column(0).to_pylist() == [row for page in pages for row in page]


@pytest.mark.parametrize("dtype", [LISTS, NESTED, IN_LISTS], ids=["lists", "nested", "in lists"])
@given(data=st.data())
def test_batches_and_takes_return_what_was_written(dtype: pa.DataType, data: st.DataObject) -> None:
    pages = data.draw(_pages(dtype))
    rows = [row for page in pages for row in page]
    with tempfile.TemporaryDirectory() as folder:
        reader = _opened(_written(Path(folder), dtype, pages), dtype)
        start = data.draw(st.integers(0, len(rows) - 1))
        stop = data.draw(st.integers(start, len(rows)))
        size = data.draw(st.integers(1, 5))
        batches = list(reader.batches(start=start, stop=stop, batch_rows=size))
        chosen = data.draw(st.sets(st.integers(0, len(rows) - 1)).map(sorted))
        taken = reader.take(np.array(chosen, np.uint64))
    assert [row for batch in batches for row in batch.column(0).to_pylist()] == rows[start:stop]
    assert all(batch.num_rows == size for batch in batches[:-1])
    assert taken.column(0).to_pylist() == [rows[i] for i in chosen]
