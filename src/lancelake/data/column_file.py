"""Writing of column files: values of some columns as another data file of a fragment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
from pyroaring import BitMap

from lancelake.clock import Ids
from lancelake.data.arrays.conform import Conformer
from lancelake.data.arrays.rebatch import gathered, pieces
from lancelake.data.arrays.spread_rows import SpreadRows
from lancelake.data.arrays.text import InvalidText
from lancelake.data.data_file_writer import DataFileWriter
from lancelake.data.schema_check import ensure_fits
from lancelake.data.storable import ensure_storable
from lancelake.data.write_task import WriteTask
from lancelake.format import layout
from lancelake.format.bases import BasePath
from lancelake.format.file_version import FileVersion
from lancelake.format.fragment import DataFile, Fragment
from lancelake.format.ids import TOMBSTONE
from lancelake.format.names import data_file_name
from lancelake.format.schema import Schema
from lancelake.storage import disk_sync
from lancelake.storage.location import Location


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFile:
    """Columns to write for a fragment, and their location."""

    root: Location
    schema: Schema
    version: FileVersion
    casts: bool = False
    newest_readers_only: bool = False
    text: InvalidText = InvalidText.REFUSE
    """Handling of strings that are not UTF-8."""
    declared_bases: tuple[BasePath, ...] = ()
    """Base paths of the table, below which blobs may be stored."""

    def ensure_possible(self, data: pa.Schema) -> Schema:
        """Return the columns of the data, or raise for those that do not fit."""
        schema = ensure_fits(self.schema, data, casts=self.casts)
        ensure_storable(schema, self.version, newest_readers_only=self.newest_readers_only)
        return schema

    def write(
        self,
        batches: Iterable[pa.RecordBatch],
        data: pa.Schema,
        *,
        deleted: BitMap,
        physical_rows: int,
        ids: Ids,
    ) -> DataFile | None:
        """Write the values of a fragment's live rows in order; None when it has no live row.

        On local disk the file is durable when `sync_file` and `sync_names` have followed.
        """
        schema = self.ensure_possible(data)
        conform = Conformer(schema, self.version, self.text)
        spread = SpreadRows(
            schema=schema, version=self.version, deleted=deleted, physical_rows=physical_rows
        )
        values = spread(conform(batch) for batch in gathered(_nonempty(batches)))
        first = next(values, None)
        if first is None:
            return None
        task = WriteTask(
            root=self.root,
            schema=schema,
            file_version=self.version,
            declared_bases=self.declared_bases,
        )
        writer = DataFileWriter(task, schema, data_file_name(ids.uuid4()))
        for piece in pieces(first):
            writer.write(piece)
        for batch in values:
            for piece in pieces(batch):
                writer.write(piece)
        entry = writer.close()
        writer.settle(leaves_sync=True)
        return entry


def sync_file(root: Location, file: DataFile | None) -> None:
    """Sync the bytes of a file below a root."""
    if file is not None and root.scheme == "file":
        disk_sync.sync_file(Path(root.uri) / layout.DATA / file.path)


def sync_names(root: Location) -> None:
    """Sync the names of all data files below a root."""
    if root.scheme == "file":
        folder = Path(root.uri) / layout.DATA
        if folder.exists():
            disk_sync.sync_folder(folder)


def with_file(fragment: Fragment, file: DataFile) -> Fragment:
    """Add a file to a fragment; its columns replace those of earlier files."""
    taken = frozenset(file.fields)
    files = tuple(_without(old, taken) for old in fragment.files)
    kept = (old for old in files if any(i != TOMBSTONE for i in old.fields))
    return replace(fragment, files=(*kept, file))


def _without(file: DataFile, taken: frozenset[int]) -> DataFile:
    if taken.isdisjoint(file.fields):
        return file
    fields = tuple(TOMBSTONE if i in taken else i for i in file.fields)
    return replace(file, fields=fields)


def _nonempty(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return (batch for batch in batches if batch.num_rows)
