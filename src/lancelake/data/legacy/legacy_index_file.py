"""Index files of releases before 0.21, in the format of legacy data files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lancelake.data.byte_source import StoreSource
from lancelake.data.codec.index_file import IndexFileReader
from lancelake.data.legacy.legacy_file import LegacyFile
from lancelake.data.legacy.legacy_layout import damage_in, load_schema
from lancelake.errors import UnsupportedError
from lancelake.format.fragment import DataFile
from lancelake.storage.table_files import FileAt


class LegacyIndexFile(IndexFileReader):
    """Reads a legacy index file.

    The format does not distinguish a null from zero or an empty value: columns are read as if
    they had no nulls.
    """

    def __init__(self, place: FileAt) -> None:
        self._place = place
        source = self._source()
        with damage_in(source):
            fields = tuple(replace(each, nullable=False) for each in load_schema(source).fields)
        nodes = [node for top in fields for node in top.walk()]
        if any(node.logical_type.startswith("dict:") for node in nodes):
            problem = f"index file {place.path} has a dictionary column in the legacy format"
            raise UnsupportedError(problem, path=place.path)
        ids = tuple(node.id for node in nodes)
        entry = DataFile(path=place.path, fields=ids, file_major_version=0, file_minor_version=2)
        self._file = LegacyFile.open(source, entry, fields, manifest=None)
        self._num_rows = self._file.num_rows
        self._schema = self._file.schema

    def batches(
        self,
        start: int = 0,
        stop: int | None = None,
        *,
        batch_rows: int = 1 << 16,
        columns: Sequence[str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Stream consecutive rows."""
        stop = self.num_rows if stop is None else min(stop, self.num_rows)
        if stop <= start:
            return
        for batch in self._opened().batches(start=start, stop=stop, batch_rows=batch_rows):
            yield batch if columns is None else batch.select(list(columns))

    def take(self, rows: Sequence[int], *, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows at these offsets, sorted and unique."""
        batch = self._opened().take(np.array(rows, dtype=np.uint64))
        table = pa.Table.from_batches([batch])
        return table if columns is None else table.select(list(columns))

    def _source(self) -> StoreSource:
        return StoreSource(self._place.store, self._place.path)

    def _opened(self) -> LegacyFile:
        """Return the file for an operation, whose account has the store calls."""
        return replace(self._file, source=self._source())
