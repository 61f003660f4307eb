"""Data files with more physical columns than their schema names."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from lance.file import LanceFileWriter

import lancelake
from lancelake.data.codec.file_layout import decode
from lancelake.data.codec.workarounds import layout_with_gaps
from lancelake.data.schema_check import found_file
from lancelake.errors import CorruptTableError
from lancelake.format.arrow_schema import from_arrow
from lancelake.proto import file_pb2, table_pb2
from lancelake.storage.location import Location
from lancelake.storage.table_files import TableFiles
from tests.support.column_gaps import ROWS, container_of, gapped_table, rewrite_tail, without_hidden
from tests.support.table_surgery import edit_manifest

each_version = pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])


@pytest.fixture
def gapped(tmp_path: Path, version: str) -> Path:
    return gapped_table(tmp_path / "t.lance", version)


@each_version
def test_a_column_is_found_by_its_physical_index(gapped: Path) -> None:
    assert lancelake.dataset(gapped).to_table().to_pydict() == {
        "a": [1, 2, 3],
        "b": [100, 200, 300],
    }


@each_version
def test_a_neighbour_of_the_same_type_is_not_read_instead(gapped: Path) -> None:
    dataset = lancelake.dataset(gapped)
    assert dataset.to_table(columns=["b"])["b"].to_pylist() == [100, 200, 300]
    assert dataset.take([2], columns=["b"])["b"].to_pylist() == [300]


@each_version
def test_an_index_that_the_file_lacks_is_refused(gapped: Path) -> None:
    def change(manifest: table_pb2.Manifest) -> None:
        manifest.fragments[0].files[0].column_indices[:] = [0, 3]

    edit_manifest(gapped, change)
    with pytest.raises(CorruptTableError, match="3 columns"):
        lancelake.dataset(gapped).to_table()


def split_strings(path: Path) -> Path:
    """Write strings the way release 0.13 did: offsets in one column, bytes in the next."""
    schema = pa.schema([("s", pa.list_(pa.uint8())), ("n", pa.int64())])
    values = [list(b"ab"), None, list("ü".encode())]
    with LanceFileWriter(str(path), schema, version="2.0") as writer:
        writer.write_batch(pa.record_batch([values, [1, 2, 3]], schema=schema))
    fields = [f for f in container_of(path).descriptor().schema.fields if f.name != "item"]
    fields[0].logical_type = "string"
    rewrite_tail(path, file_pb2.Schema(fields=fields))
    return path


def test_strings_in_two_columns_are_recognized_by_their_encoding(tmp_path: Path) -> None:
    container = container_of(split_strings(tmp_path / "f.lance"))
    regular = decode(container.descriptor(), container.version)
    layout = layout_with_gaps(container, regular)
    assert [(c.index, c.width) for c in layout.columns] == [(0, 2), (2, 1)]


def test_a_file_that_is_added_lists_its_physical_columns(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    split_strings(tmp_path / "data" / "f.lance")
    schema = from_arrow(pa.schema([("s", pa.string()), ("n", pa.int64())]))
    found = found_file(TableFiles(root=Location.parse(tmp_path)), "f.lance", schema)
    assert found.entry.column_indices == (0, 2)


def test_columns_that_nothing_accounts_for_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "f.lance"
    with LanceFileWriter(str(path), ROWS.schema, version="2.1") as writer:
        writer.write_batch(ROWS.to_batches()[0])
    rewrite_tail(path, without_hidden(container_of(path).descriptor().schema))
    container = container_of(path)
    regular = decode(container.descriptor(), container.version)
    with pytest.raises(CorruptTableError, match="has 3 columns, its schema 2"):
        layout_with_gaps(container, regular)
