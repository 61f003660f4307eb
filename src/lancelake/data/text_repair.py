"""Repair of strings that are not UTF-8: find them, and rewrite their columns with U+FFFD."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyroaring import BitMap

from lancelake.data.arrays.batches import InvalidText, invalid_paths
from lancelake.data.column_file import ColumnFile, sync_file, sync_names, with_file
from lancelake.data.fragment_reader import FragmentReader
from lancelake.format.fragment import FileVersion, Fragment
from lancelake.format.schema import Field, Schema, quote_segment
from lancelake.storage.table_files import FileAt, TableFiles

_BATCH_ROWS = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredText:
    """A top-level column of one fragment as stored; deleted rows are included."""

    files: TableFiles
    manifest: FileAt
    fragment: Fragment
    field: Field

    def invalid_paths(self) -> tuple[str, ...]:
        """Return the paths in the column with strings that are not UTF-8."""
        name = quote_segment(self.field.name)
        paths = (path for batch in self._batches() for path in invalid_paths(batch.column(0), name))
        return tuple(dict.fromkeys(paths))

    def replaced(self, version: FileVersion) -> Fragment:
        """Write the column to a new data file, with U+FFFD in place of invalid bytes.

        Returns the fragment with that file; on local disk it is durable.
        """
        reader = self._reader()
        batches = self._batches()
        first = next(batches, None)
        if first is None:
            return self.fragment
        target = ColumnFile(
            root=self.files.root,
            schema=Schema(fields=(self.field,)),
            version=version,
            # The table already has such columns.
            newest_readers_only=True,
            text=InvalidText.REPLACE,
        )
        # Deleted rows keep their values: the file does not record which rows are deleted.
        file = target.write(
            _chained(first, batches),
            first.schema,
            deleted=BitMap(),
            physical_rows=reader.physical_rows,
        )
        assert file is not None
        sync_file(self.files.root, file)
        sync_names(self.files.root)
        return with_file(replace(self.fragment, physical_rows=reader.physical_rows), file)

    def _reader(self) -> FragmentReader:
        schema = Schema(fields=(self.field,))
        return FragmentReader(self.files, self.manifest, self.fragment, schema, raw_text=True)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        reader = self._reader()
        return reader.batches(start=0, stop=reader.physical_rows, batch_rows=_BATCH_ROWS)


def _chained(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest
