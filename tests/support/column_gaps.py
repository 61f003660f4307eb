"""Data files with more physical columns than their schema names."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import lancelake
from lancelake.data.codec.file_layout import Container, open_container
from lancelake.data.codec.transplant import file_tail
from lancelake.proto import file_pb2, table_pb2
from tests.support.legacy_tables import MemorySource
from tests.support.table_surgery import edit_manifest

ROWS = pa.table({"a": [1, 2, 3], "hidden": [10, 20, 30], "b": [100, 200, 300]})


def container_of(path: Path) -> Container:
    return open_container(MemorySource(path.read_bytes(), path.name))


def rewrite_tail(path: Path, schema: file_pb2.Schema) -> None:
    """Put another schema over the columns of a file."""
    container = container_of(path)
    columns = [container.column(n) for n in range(container.num_columns)]
    descriptor = file_pb2.FileDescriptor(schema=schema, length=container.descriptor().length)
    pages = path.read_bytes()[: container.column_metadata[0].start]
    pages += bytes(-len(pages) % 64)
    path.write_bytes(pages + file_tail(len(pages), columns, descriptor, container.version_numbers))


def without_hidden(schema: file_pb2.Schema) -> file_pb2.Schema:
    return file_pb2.Schema(fields=[f for f in schema.fields if f.name != "hidden"])


def gapped_table(root: Path, version: str) -> Path:
    """Create a table of columns 0 and 2 of a file with three, all of one type."""
    lancelake.write_dataset(ROWS, root, data_storage_version=version)
    (path,) = (root / "data").iterdir()
    rewrite_tail(path, without_hidden(container_of(path).descriptor().schema))

    def change(manifest: table_pb2.Manifest) -> None:
        fields = [f for f in manifest.fields if f.name != "hidden"]
        del manifest.fields[:]
        manifest.fields.extend(fields)
        file = manifest.fragments[0].files[0]
        file.fields[:], file.column_indices[:] = [0, 2], [0, 2]
        file.file_size_bytes = path.stat().st_size

    edit_manifest(root, change)
    return root
