"""Fragment reader: physical rows with the columns of all data files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from lancelake.data.assemble import Assembler
from lancelake.data.column_reader import ColumnReader, RowOffsets
from lancelake.data.open_columns import open_columns, stored_rows
from lancelake.data.projection import FileProjection, split
from lancelake.data.small_files import remembered
from lancelake.errors import CorruptTableError
from lancelake.format.computed_once import computed_once
from lancelake.format.fragment import Fragment
from lancelake.format.schema import Schema
from lancelake.storage.table_files import FileAt, TableFiles


@dataclass(frozen=True)
class FragmentReader:
    """Reads the fields of `schema` from one fragment; deleted rows are included.

    With `remembers`, the columns of a small fragment are cached. With `raw_text`, strings
    are returned as stored, even if they are not UTF-8.
    """

    files: TableFiles
    manifest: FileAt
    fragment: Fragment
    schema: Schema
    remembers: bool = False
    raw_text: bool = False

    @computed_once
    def physical_rows(self) -> int:
        """Rows in the files, from the manifest or else from a file."""
        if self.fragment.physical_rows is not None:
            return self.fragment.physical_rows
        if not self.fragment.files:
            return 0
        return stored_rows(self.files, self.fragment.files[0])

    def batches(self, *, start: int, stop: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield rows start to stop in order, in batches of `batch_rows`, except for the last."""
        if self._remembered is not None:
            for first in range(start, stop, batch_rows):
                yield self._remembered.slice(first, min(batch_rows, stop - first))
            return
        yield from self._read(start=start, stop=stop, batch_rows=batch_rows)

    def _read(self, *, start: int, stop: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
        if not self._readers:
            for first in range(start, stop, batch_rows):
                yield self._assemble((), min(batch_rows, stop - first))
            return
        streams = [r.batches(start=start, stop=stop, batch_rows=batch_rows) for r in self._readers]
        for parts in zip(*streams, strict=True):
            yield self._join(parts, parts[0].num_rows)

    def take(self, offsets: RowOffsets) -> pa.RecordBatch:
        """Return the rows at these offsets, sorted and unique."""
        if self._remembered is not None:
            return self._remembered.take(pa.array(offsets))
        parts = tuple(reader.take(offsets) for reader in self._readers)
        return self._join(parts, len(offsets))

    def _join(self, parts: tuple[pa.RecordBatch, ...], num_rows: int) -> pa.RecordBatch:
        if any(part.num_rows != num_rows for part in parts):
            problem = f"files of fragment {self.fragment.id} differ in their row counts"
            raise CorruptTableError(problem, table=self.files.root.uri)
        return self._assemble(parts, num_rows)

    @computed_once
    def _remembered(self) -> pa.RecordBatch | None:
        if not self.remembers:
            return None
        return remembered(self.files, self.fragment, self.schema, self._whole)

    def _whole(self) -> pa.RecordBatch:
        rows = self.physical_rows
        return pa.concat_batches(list(self._read(start=0, stop=rows, batch_rows=rows)))

    @computed_once
    def _assemble(self) -> Assembler:
        return Assembler.of(self.schema)

    @computed_once
    def _readers(self) -> tuple[ColumnReader, ...]:
        parts = split(self.fragment, self.schema)
        return tuple(reader for part in parts for reader in self._open(part))

    def _open(self, part: FileProjection) -> tuple[ColumnReader, ...]:
        readers = open_columns(self.files, part, self.manifest, raw_text=self.raw_text)
        rows = readers[0].num_rows
        if rows != self.physical_rows:
            problem = (
                f"data file {part.file.path} has {rows} rows, "
                f"fragment {self.fragment.id} {self.physical_rows}"
            )
            raise CorruptTableError(problem, table=self.files.root.uri, path=part.file.path)
        return readers
