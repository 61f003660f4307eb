"""Data files read by the codec in the groups of `read_groups`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from lance.file import LanceFileReader, LanceFileWriter

from lancelake.data.codec import file_layout
from lancelake.data.codec.file_layout import ColumnKind, Container, FileLayout, open_container
from lancelake.data.codec.lance_file import ReadGroup, read_groups
from lancelake.data.codec.transplant import transplant
from tests.support.legacy_tables import MemorySource

FILES = Path(__file__).parent.parent / "unit" / "data" / "files"


@dataclass(frozen=True, kw_only=True)
class DataFileOnDisk:
    """A data file, its layout, and a place for transplants."""

    path: Path
    container: Container
    layout: FileLayout
    workspace: Path

    @staticmethod
    def open(path: Path, workspace: Path) -> DataFileOnDisk:
        container = open_container(MemorySource(path.read_bytes(), path.name))
        layout = file_layout.decode(
            container.descriptor(), container.version, num_columns=container.num_columns
        )
        return DataFileOnDisk(path=path, container=container, layout=layout, workspace=workspace)

    def groups(self, *paths: str) -> tuple[ReadGroup, ...]:
        """Plan to read the columns at these dotted paths, or all that hold values."""
        columns = [c for c in self.layout.columns if c.kind is not ColumnKind.PARENT]
        index = {".".join(c.path): c.index for c in columns}
        wanted = [index[p] for p in paths] if paths else [c.index for c in columns]
        return read_groups(self.layout, self.container, wanted)

    def reader(self, group: ReadGroup, rows: range | None = None) -> LanceFileReader:
        """Open the columns of a group."""
        if group.transplant is None:
            return LanceFileReader(str(self.path), columns=list(group.projection))
        target = self.workspace / "transplanted.lance"
        transplant(self.container, group.transplant, target, rows=rows)
        return LanceFileReader(str(target))

    def tables(self, *paths: str) -> Iterator[pa.Table]:
        """Yield the columns at these paths, group by group."""
        for group in self.groups(*paths):
            yield self.reader(group).read_all().to_table()

    def values(self, *paths: str) -> dict[str, list[object]]:
        """Return the top-level columns of groups that share none."""
        return {
            name: table[name].to_pylist()
            for table in self.tables(*paths)
            for name in table.schema.names
        }


def written(path: Path, table: pa.Table, version: str, *, page_bytes: int | None = None) -> Path:
    """Write a table with the codec, in small pages if asked."""
    cache = None if page_bytes is None else page_bytes * len(table.schema)
    writer = LanceFileWriter(
        str(path),
        table.schema,
        version=version,
        data_cache_bytes=cache,
        max_page_bytes=page_bytes,
    )
    for batch in table.to_batches(max_chunksize=500):
        writer.write_batch(batch)
    writer.close()
    return path


def official_table(root: Path, table: pa.Table, version: str) -> tuple[Path, pa.Table]:
    """Write a table with the official library; return its one data file, and how it reads it."""
    options: dict[str, Any] = {"data_storage_version": version}  # pylance wants a literal
    dataset = lance.write_dataset(table, str(root), **options)
    (path,) = (root / "data").glob("*.lance")
    return path, dataset.to_table()


def structs(values: Sequence[object], **members: pa.DataType) -> pa.Array:
    """Make a struct array of dicts and Nones."""
    return pa.array(values, pa.struct(list(members.items())))
