"""Levels of pages outside of their lists."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from lance.file import LanceFileWriter

from lancelake.data.codec.file_layout import levels_above_lists, open_container
from lancelake.data.column_reader import LoadedSource
from lancelake.errors import CorruptTableError
from lancelake.proto import file2_pb2

LISTS = pa.struct({"x": pa.list_(pa.binary())})


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        (pa.array([{"x": [b"a"]}], LISTS), (False,)),
        (pa.array([{"x": [b"a"]}, None], LISTS), (True,)),
        (pa.array([{"x": None}, None], LISTS), (True,)),
        (pa.array([{"x": [b"a" * 100_000]}, None], LISTS), (True,)),
        (pa.array([{"x": [b"a", None]}, {"x": []}], LISTS), (False,)),
        (pa.array([{"x": 1}, None], pa.struct({"x": pa.int8()})), ()),
        (pa.array([1, None]), ()),
        (pa.array([[{"x": 1}, None]]), ()),
    ],
)
def test_structs_above_lists_have_nulls_or_not(
    tmp_path: Path, values: pa.Array, levels: tuple[bool, ...]
) -> None:
    path = tmp_path / "x.lance"
    batch = pa.record_batch({"a": values})
    with LanceFileWriter(str(path), batch.schema, version="2.1") as writer:
        writer.write_batch(batch)
    container = open_container(LoadedSource(name="x.lance", data=path.read_bytes()))
    (page,) = container.column(0).pages
    assert levels_above_lists(page) == levels


def test_damaged_encoding_is_reported() -> None:
    page = file2_pb2.ColumnMetadata.Page()
    page.encoding.direct.encoding = b"\xff\xff"
    with pytest.raises(CorruptTableError, match="encoding of a page"):
        levels_above_lists(page)
