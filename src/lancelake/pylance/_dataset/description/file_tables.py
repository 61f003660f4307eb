"""Dataset methods that list files, and open single ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.data.codec.official import file_session
from lancelake.table.file_lists import stored_files, tracked_files

_BATCH_ROWS = 1024
_URI = pa.dictionary(pa.int32(), pa.string())
_ALL = pa.schema(
    [
        pa.field("base_uri", _URI, nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("last_modified", pa.timestamp("us", tz="UTC"), nullable=False),
    ]
)
_TRACKED = pa.schema(
    [
        pa.field("version", pa.int64(), nullable=False),
        pa.field("base_uri", _URI, nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("type", pa.dictionary(pa.int8(), pa.string()), nullable=False),
    ]
)


class DatasetFiles:
    """Methods that list the files of the table, and open single ones."""

    _snapshot: Snapshot

    def new_file_session(self) -> Any:
        """Return a session of `lance.file` for single files below the root of the table.

        Returns:
            The session.

        Examples:
            >>> path = f"data/{ds.get_fragment(0).data_files()[0].path}"
            >>> ds.new_file_session().contains(path)
            True
        """
        location = self._snapshot.location
        return file_session(location.uri, storage_options=location.storage_options or None)

    def all_files(self) -> pa.RecordBatchReader:
        """Return every file below the root of the table.

        Returns:
            The URI of the root, the path, the size and the time of each file.

        Examples:
            >>> paths = ds.all_files().read_all()["path"].to_pylist()
            >>> [path for path in paths if path.startswith("data/")]
            ['data/....lance']
        """
        location = self._snapshot.location
        found = stored_files(location)
        rows = ((location.uri, i.path, i.size_bytes, i.modified_ns // 1000) for i in found)
        return _reader(rows, _ALL)

    def tracked_files(
        self,
        *,
        min_version: int | None = None,
        progress: Callable[[int, int | None], Any] | None = None,
    ) -> pa.RecordBatchReader:
        """Return the files that versions refer to.

        Args:
            min_version: The first version to read.
            progress: Called with the numbers of versions read and in total.

        Returns:
            The version, the URI of the root, the path and the type of each file.

        Examples:
            >>> ds.insert(ds.head(1))
            >>> sorted(set(ds.tracked_files().read_all()["version"].to_pylist()))
            [1, 2]
        """
        location = self._snapshot.location
        found = tracked_files(location, min_version=min_version, progress=progress)
        rows = ((file.version, file.root.uri, file.path, file.kind) for file in found)
        return _reader(rows, _TRACKED)


def _reader(rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(schema, _batches(rows, schema))


def _batches(rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    left = iter(rows)
    while part := list(islice(left, _BATCH_ROWS)):
        columns = zip(*part, strict=True)
        arrays = [_array(values, f.type) for values, f in zip(columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(values: tuple[Any, ...], dtype: pa.DataType) -> pa.Array:
    if not pa.types.is_dictionary(dtype):
        return pa.array(values, dtype)
    return pa.array(values, dtype.value_type).dictionary_encode().cast(dtype)
