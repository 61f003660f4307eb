"""Methods that describe a dataset: facts, statistics, files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypedDict

import pyarrow as pa

from lancelake.core.table import Table
from lancelake.core.table_place import TablePlace
from lancelake.core.values.metadata import Snapshot, public_schema
from lancelake.core.values.versions import lacks_facts
from lancelake.data.codec.official import file_session
from lancelake.pylance._dataset.index_values import index_statistics
from lancelake.pylance._dataset.refs import Branches, Tags
from lancelake.pylance._dataset.state import DatasetState
from lancelake.pylance._dataset.transactions import Transaction, from_transaction
from lancelake.pylance._values.opened import version_text
from lancelake.pylance.schema import LanceSchema


@dataclass
class FieldStatistics:
    """Size of one field."""

    id: int
    bytes_on_disk: int


@dataclass
class DataStatistics:
    """Sizes of all fields."""

    fields: list[FieldStatistics] = field(default_factory=list)


class DatasetStats(TypedDict):
    """Counts of a version."""

    num_deleted_rows: int
    num_fragments: int
    num_small_files: int


class LanceStats:
    """Statistics of one version."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def __repr__(self) -> str:
        return version_text(self, self._snapshot)

    def dataset_stats(self, max_rows_per_group: int = 1024) -> DatasetStats:
        """Count fragments, small fragments, and deleted rows."""
        counts = Table(self._snapshot).maintenance.dataset_counts(max_rows_per_group)
        return DatasetStats(
            num_deleted_rows=counts.num_deleted_rows,
            num_fragments=counts.num_fragments,
            num_small_files=counts.num_small_files,
        )

    def index_stats(self, index_name: str) -> dict[str, Any]:
        """Return the coverage of an index."""
        return index_statistics(self._snapshot, index_name)

    def data_stats(self) -> DataStatistics:
        """Return the size of each field."""
        sizes = Table(self._snapshot).maintenance.column_bytes()
        return DataStatistics(
            [FieldStatistics(id=field_id, bytes_on_disk=size) for field_id, size in sizes.items()]
        )


def manifest_needs_migration(dataset: DatasetFacts) -> bool:
    """Return whether the manifest of an early release lacks facts that later ones record.

    Args:
        dataset: The table, at a version.

    Returns:
        Whether numbers of rows, or fragments of indices, are missing.

    Examples:
        >>> from lancelake.pylance.lance import manifest_needs_migration
        >>> manifest_needs_migration(ds)
        False
    """
    return lacks_facts(dataset._snapshot.state)


class DatasetFacts(DatasetState):
    """Properties of the open version, its files, and the transactions that led to it."""

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema, with the columns that the default scan options add.

        Examples:
            >>> ds.schema.names
            ['id', 'name', 'score']
        """
        if self._default_scan_options:
            dataset: Any = self
            schema: pa.Schema = dataset.scanner().projected_schema
            return schema
        return public_schema(self._snapshot.manifest.schema)

    @property
    def lance_schema(self) -> LanceSchema:
        """The schema with field ids.

        Examples:
            >>> [field.id() for field in ds.lance_schema.fields()]
            [0, 1, 2]
        """
        return LanceSchema(self._snapshot.manifest.schema)

    @property
    def data_storage_version(self) -> str:
        """Format version of the table's data files.

        Examples:
            >>> made = lance.write_dataset({"id": [1]}, "new.lance", data_storage_version="2.1")
            >>> made.data_storage_version
            '2.1'
        """
        return self._snapshot.manifest.data_version.value

    @property
    def has_stable_row_ids(self) -> bool:
        """Whether rows keep their ids when they are moved.

        Examples:
            >>> ds.has_stable_row_ids
            True
        """
        return self._snapshot.manifest.has_stable_row_ids

    @property
    def max_field_id(self) -> int:
        """Highest field id in use.

        Examples:
            >>> ds.max_field_id
            2
        """
        return self._snapshot.manifest.schema.max_field_id

    @property
    def metadata(self) -> dict[str, str]:
        """Metadata of the table.

        Examples:
            >>> ds.update_metadata({"owner": "ada"}) == ds.metadata
            True
        """
        return dict(self._snapshot.manifest.table_metadata)

    @property
    def schema_metadata(self) -> dict[str, str]:
        """Metadata of the Arrow schema.

        Examples:
            >>> ds.schema_metadata
            {}
        """
        metadata = self._snapshot.manifest.schema.metadata
        return {key: value.decode() for key, value in metadata.items()}

    def config(self) -> dict[str, str]:
        """Return the settings stored with the table.

        Examples:
            >>> config = ds.update_config({"team": "search"})
            >>> ds.config()["team"]
            'search'
        """
        return dict(self._snapshot.manifest.config)

    @property
    def tags(self) -> Tags:
        """The table's tags.

        Examples:
            >>> ds.tags.create("stable")
            >>> ds.tags
            Tags(stable=1)
        """
        return Tags(self._table)

    @property
    def branches(self) -> Branches:
        """The table's branches.

        Examples:
            >>> trial = ds.create_branch("trial")
            >>> ds.branches
            Branches(trial)
        """
        return Branches(self._table)

    @property
    def stats(self) -> LanceStats:
        """Statistics of the table.

        Examples:
            >>> ds.stats.dataset_stats()["num_fragments"]
            1
        """
        return LanceStats(self._snapshot)

    @property
    def partition_expression(self) -> Any:
        """Not supported, as in pylance."""
        raise NotImplementedError("partitioning not yet supported")

    def read_transaction(self, version: int) -> Transaction | None:
        """Return the transaction of a version.

        Args:
            version: The number of the version.

        Returns:
            The transaction; None if the version recorded none.

        Raises:
            VersionNotFoundError: The table does not have the version.

        Examples:
            >>> type(ds.read_transaction(1).operation).__name__
            'Overwrite'
        """
        location = self._snapshot.location
        snapshot = Snapshot.load(location, TablePlace(location).find_version(version))
        return None if snapshot.transaction is None else from_transaction(snapshot.transaction)

    def get_transactions(self, recent_transactions: int = 10) -> list[Transaction | None]:
        """Return the transactions of the latest versions up to this one, newest first.

        Args:
            recent_transactions: Versions to read, at most.

        Returns:
            One transaction per version, None where none was recorded.

        Examples:
            >>> deleted = ds.delete("id = 1")
            >>> [type(each.operation).__name__ for each in ds.get_transactions()]
            ['Delete', 'Overwrite']
        """
        transactions: list[Transaction | None] = []
        for snapshot in TablePlace(self._snapshot.location).snapshots(newest_first=True):
            if snapshot.version > self._snapshot.version:
                continue
            if len(transactions) == recent_transactions:
                break
            entry = snapshot.transaction
            transactions.append(None if entry is None else from_transaction(entry))
        return transactions

    def new_file_session(self) -> Any:
        """Return a session of `lance.file` for single files below the root of the table.

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
        files = TablePlace(location).stored_files()
        rows = ((location.uri, i.path, i.size_bytes, i.modified_ns // 1000) for i in files)
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
        files = TablePlace(location).tracked_files(min_version=min_version, progress=progress)
        rows = ((file.version, file.root.uri, file.path, file.kind) for file in files)
        return _reader(rows, _TRACKED)


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
