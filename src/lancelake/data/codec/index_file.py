"""Index files: Lance files with schema metadata and global buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from lancelake.data.codec.official import CodecAddress, CodecWriter
from lancelake.data.codec.readers import CodecReader, expect_reader, explained, open_reader
from lancelake.errors import CorruptTableError, ObjectNotFoundError, UnsupportedError
from lancelake.format.frozen import computed_once
from lancelake.format.index_meta import IndexFile
from lancelake.storage import disk_sync
from lancelake.storage.instrumented import count_written, report_created
from lancelake.storage.table_files import FileAt

FILE_VERSION = "2.0"
"""File version of index files, which every release reads."""
_READAHEAD = 4
# The codec writes pages of 8 MiB. When it has to assemble them from smaller batches, its memory
# grows with the file.
_PAGE_BYTES = 8 << 20
# Of the number of a global buffer.
_MAX_DIGITS = 9


@dataclass(frozen=True, kw_only=True)
class SegmentFolder:
    """The folder of one index segment."""

    place: FileAt

    @computed_once
    def uri(self) -> str:
        """URI of the folder."""
        return self.place.uri

    def file(self, name: str) -> FileAt:
        """Location of a file of the segment."""
        return FileAt(root=self.place.root, path=f"{self.place.path}/{name}")

    def open(self, name: str) -> IndexFileReader:
        """Open a file of the segment."""
        return IndexFileReader(self.file(name))

    def fits(self, name: str, test: Callable[[str], bool]) -> bool:
        """Whether a file passes a test that opens it; one in a format that is not read does not.

        A missing or damaged file passes: it is reported when it is opened to be searched.
        """
        try:
            return test(name)
        except UnsupportedError:
            return False
        except (CorruptTableError, ObjectNotFoundError):
            return True

    def expect(self, name: str) -> None:
        """Prepare to open a file of the segment soon, if there is one of this name."""
        expect_reader(self.file(name))

    def create(self, name: str, schema: pa.Schema) -> IndexFileWriter:
        """Create a file of the segment."""
        return IndexFileWriter(self, name, schema)


class IndexFileReader:
    """Reads an index file; errors name the file."""

    def __init__(self, place: FileAt) -> None:
        self._place = place
        self._num_rows = self._reader().num_rows()
        self._schema: pa.Schema | None = None

    @property
    def num_rows(self) -> int:
        """Row count of the file."""
        return self._num_rows

    @property
    def schema(self) -> pa.Schema:
        """Columns of the file."""
        if self._schema is None:
            self._schema = self._reader().facts().schema
        return self._schema

    @property
    def metadata(self) -> dict[str, str]:
        """Metadata of the schema."""
        entries = self.schema.metadata or {}
        return {key.decode(): value.decode() for key, value in entries.items()}

    def buffer(self, metadata_key: str) -> bytes | None:
        """Return the global buffer whose number is stored under a metadata key."""
        number = self.metadata.get(metadata_key)
        if number is None:
            return None
        is_number = number.isascii() and number.isdecimal() and len(number) <= _MAX_DIGITS
        return self.buffer_at(int(number) if is_number else -1)

    def buffer_at(self, number: int) -> bytes:
        """Return the global buffer of a number."""
        if not 0 <= number < 10**_MAX_DIGITS:
            msg = f"index file {self._place.path} refers to a global buffer that it cannot have"
            raise CorruptTableError(msg, path=self._place.path)
        with explained(self._place.path):
            return self._reader().read_global_buffer(number)

    def read(
        self, start: int = 0, stop: int | None = None, *, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Return consecutive rows."""
        stop = self.num_rows if stop is None else min(stop, self.num_rows)
        if stop <= start:
            return self._selected(None if columns is None else tuple(columns)).empty_table()
        return pa.Table.from_batches(self.batches(start, stop, columns=columns))

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
        names = None if columns is None else tuple(columns)
        if stop <= start:
            return
        with explained(self._place.path):
            reader = self._reader(names)
            stream = reader.read_range(
                start, stop - start, batch_rows=batch_rows, readahead=_READAHEAD
            )
            for batch in stream:
                if names is None and self._schema is None:
                    # To ask the codec for it takes as long as reading a page.
                    self._schema = batch.schema
                plain = batch.schema.remove_metadata()
                yield pa.RecordBatch.from_arrays(batch.columns, schema=plain)

    def take(self, rows: Sequence[int], *, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows at these offsets, sorted and unique."""
        names = None if columns is None else tuple(columns)
        schema = self._selected(names)
        if not len(rows):
            return schema.empty_table()
        with explained(self._place.path):
            batches = list(self._reader(names).take_rows(list(rows), readahead=_READAHEAD))
        return pa.Table.from_batches([b.cast(schema) for b in batches], schema=schema)

    def require(self, *names: str) -> None:
        """Raise for a file without one of these columns."""
        missing = [name for name in names if name not in self.schema.names]
        if missing:
            msg = f"index file {self._place.path} has no column {missing[0]}"
            raise CorruptTableError(msg, path=self._place.path)

    def _selected(self, names: tuple[str, ...] | None) -> pa.Schema:
        plain = self.schema.remove_metadata()
        return plain if names is None else pa.schema([plain.field(name) for name in names])

    def _reader(self, columns: tuple[str, ...] | None = None) -> CodecReader:
        return open_reader(self._place, columns)


class IndexFileWriter:
    """Writes an index file, which is visible once `finish` returns."""

    def __init__(self, folder: SegmentFolder, name: str, schema: pa.Schema) -> None:
        self._name = name
        self._rows = 0
        self._schema = schema
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._place = folder.file(name)
        self._address = CodecAddress.of(self._place)
        self._codec = CodecWriter(self._address, name, schema, version=FILE_VERSION)

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        is_page = any(column.nbytes >= _PAGE_BYTES for column in batch.columns)
        if is_page:
            self._write_held()
        self._held.append(batch)
        self._held_bytes += batch.nbytes
        self._rows += batch.num_rows
        if is_page or self._held_bytes >= _PAGE_BYTES * len(self._schema):
            self._write_held()

    def _write_held(self) -> None:
        batches, self._held, self._held_bytes = self._held, [], 0
        if batches:
            self._codec.write(batches[0] if len(batches) == 1 else pa.concat_batches(batches))

    def add_buffer(self, data: bytes) -> int:
        """Add a global buffer and return its number."""
        return self._codec.add_buffer(data)

    def finish(self, metadata: Mapping[str, str] | None = None) -> IndexFile:
        """Finish the file with metadata of its schema, durably, and return its entry."""
        self._write_held()
        if not self._rows:
            self._codec.write(pa.RecordBatch.from_pylist([], schema=self._schema))
        size = self._codec.close(dict(metadata or {}))
        self._address.arrived()
        if self._address.is_in_place:
            disk_sync.sync_folder(Path(self._address.uri).parent)
        count_written(self._place.root, size)
        report_created(self._place.root, self._place.path)
        return IndexFile(path=self._name, size_bytes=size)
