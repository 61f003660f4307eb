"""Writer of one data file, which returns its manifest entry."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from lancelake.data.blobs.files import BlobFiles
from lancelake.data.codec.address import CodecAddress, writing
from lancelake.data.codec.official import file_writer
from lancelake.data.file_schema import column_ids, file_schema
from lancelake.data.write_task import WriteTask
from lancelake.format.bases import BasePath
from lancelake.format.fragment import DataFile
from lancelake.format.schema import Schema
from lancelake.storage import disk_sync
from lancelake.storage.audit import report_created
from lancelake.storage.io_meter import count_written
from lancelake.storage.table_files import TableFiles


class DataFileWriter:
    """Writes batches of `Conformer`; the file is not visible until `close`."""

    def __init__(
        self, task: WriteTask, schema: Schema, name: str, base: BasePath | None = None
    ) -> None:
        """Open a file of this name for the fields of `schema`, below a base or the root."""
        self.rows = 0
        self.memory_bytes = 0
        self._schema = schema
        self._entry = _entry(task, schema, name, base)
        files = TableFiles(root=task.root, bases=() if base is None else (base,))
        self._place = files.data_file(self._entry)
        self._address = CodecAddress.of(self._place)
        self._blobs = BlobFiles(
            address=self._address,
            allow_external=task.allow_external_blobs,
            bases=task.declared_bases,
        )
        self._arrow = file_schema(schema)
        with writing(name):
            self._codec = file_writer(
                self._address.uri,
                self._arrow,
                version=task.file_version.value,
                storage_options=self._address.storage_options,
                max_page_bytes=task.pages.max_page_bytes,
                data_cache_bytes=task.pages.data_cache_bytes,
            )

    @property
    def begun(self) -> DataFile:
        """The file's entry before anything is written."""
        return replace(self._entry, fields=(), column_indices=())

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        prepared = self._with_stored_blobs(batch)
        with writing(self._entry.path):
            self._codec.write_batch(prepared)
        self.rows += batch.num_rows
        self.memory_bytes += prepared.nbytes

    def close(self) -> DataFile:
        """Finish the file and return its entry; `settle` must follow."""
        self._blobs.finish()
        with writing(self._entry.path):
            self._codec.close()
        size = int(self._codec.size_bytes or 0)
        count_written(self._place.root, size)
        report_created(self._place.root, self._place.path)
        return replace(self._entry, file_size_bytes=size)

    def settle(self, *, leaves_sync: bool = False) -> None:
        """Move the files to their location, on local disk durably except for the file's name.

        Callers with many files may sync their bytes together, later.
        """
        self._blobs.settle()
        if not (leaves_sync and self._address.is_in_place):
            self._address.arrived()

    def sync_name(self) -> None:
        """Sync the names of all files in this file's folder."""
        if self._address.is_in_place:
            disk_sync.sync_folder(Path(self._address.uri).parent)

    def _with_stored_blobs(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [
            self._blobs.store(field, array) if field.is_blob_v2 else array
            for field, array in zip(self._schema.fields, batch.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._arrow)


def _entry(task: WriteTask, schema: Schema, name: str, base: BasePath | None) -> DataFile:
    major, minor = task.file_version.numbers
    ids = column_ids(schema, task.file_version)
    return DataFile(
        path=name,
        fields=ids,
        column_indices=tuple(range(len(ids))),
        file_major_version=major,
        file_minor_version=minor,
        base_id=None if base is None else base.id,
    )
