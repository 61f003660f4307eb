"""`LanceDataset`: a table at a version, as in pylance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, Unpack

import pyarrow as pa

from lancelake.commit.locked import CommitLock
from lancelake.commit.snapshot import Snapshot
from lancelake.commit.versions import latest_version
from lancelake.data.write_task import MAX_BYTES_PER_FILE, MAX_ROWS_PER_FILE, Progress
from lancelake.errors import InvalidRequestError
from lancelake.format.fragment import Fragment
from lancelake.format.fragment_list import FragmentList
from lancelake.format.ids import FragmentId
from lancelake.format.transaction import COMMIT_MESSAGE as LANCE_COMMIT_MESSAGE_KEY
from lancelake.pylance._dataset.arrow_classes import ArrowDataset
from lancelake.pylance._dataset.arrow_methods import ArrowMethods
from lancelake.pylance._dataset.base_path import DatasetBasePath
from lancelake.pylance._dataset.change_feed import DatasetDelta, DatasetHistory
from lancelake.pylance._dataset.changing import BulkCommitResult, DatasetChanges
from lancelake.pylance._dataset.cleaning import CleanupExplanation, CleanupStats, DatasetCleanup
from lancelake.pylance._dataset.columns import AlterColumn, DatasetColumns
from lancelake.pylance._dataset.external_blobs import rows_with_blobs
from lancelake.pylance._dataset.facts import DatasetFacts
from lancelake.pylance._dataset.file_tables import DatasetFiles
from lancelake.pylance._dataset.guarded import lock_of, missing_lock
from lancelake.pylance._dataset.index_values import (
    Index,
    IndexConfig,
    IndexDescription,
    IndexFile,
    IndexInformation,
    SupportedDistributedIndices,
)
from lancelake.pylance._dataset.indexing import DatasetIndices
from lancelake.pylance._dataset.lance_operation import LanceOperation
from lancelake.pylance._dataset.mem_wal_methods import DatasetMemWal
from lancelake.pylance._dataset.merge import MergeInsertBuilder, MergeStats
from lancelake.pylance._dataset.namespace_tables import find_table
from lancelake.pylance._dataset.notebook import dataset_html
from lancelake.pylance._dataset.optimizing import DatasetMaintenance, DatasetOptimizer
from lancelake.pylance._dataset.options import (
    ExternalBlobMode,
    InvalidText,
    LegacyOptions,
    UncommittedOptions,
    WriteMode,
)
from lancelake.pylance._dataset.reading import DatasetReads
from lancelake.pylance._dataset.reference import VersionLike, reference
from lancelake.pylance._dataset.refs import Branch, Branches, Tag, Tags
from lancelake.pylance._dataset.rows import DatasetRows, DeleteResult, UpdateResult
from lancelake.pylance._dataset.scan_statistics import ScanStatistics
from lancelake.pylance._dataset.scanner import LanceScanner, ScannerBuilder
from lancelake.pylance._dataset.scanning import DatasetScans, serialize_row_addrs
from lancelake.pylance._dataset.searching import DatasetSearch
from lancelake.pylance._dataset.session import Session, locate, session_at
from lancelake.pylance._dataset.sql import SqlQuery, SqlQueryBuilder
from lancelake.pylance._dataset.stats import (
    DatasetStats,
    DataStatistics,
    FieldStatistics,
    LanceStats,
)
from lancelake.pylance._dataset.transaction import Transaction
from lancelake.pylance._dataset.uris import uri_of
from lancelake.pylance._dataset.vector_index_reader import VectorIndexReader
from lancelake.pylance._dataset.vector_models import DatasetVectorModels
from lancelake.pylance._dataset.version_values import Version, VersionRef, version_of
from lancelake.pylance._dataset.writing import (
    AutoCleanupConfig,
    commit_lock_of,
    ensure_openable,
    write_options,
    write_rows,
)
from lancelake.pylance._values.arguments import given
from lancelake.pylance._values.ordering import ColumnOrdering
from lancelake.pylance.blob import DEFAULT_BLOB_BUFFER_SIZE, BlobFile
from lancelake.pylance.fragment import DataFile, FragmentMetadata, LanceFragment
from lancelake.pylance.optimize import Compaction, CompactionMetrics
from lancelake.pylance.progress import FragmentWriteProgress
from lancelake.pylance.query import DocumentGranularity, FullTextQuery
from lancelake.pylance.schema import LanceSchema
from lancelake.pylance.udf import BatchUDF, BatchUDFCheckpoint, batch_udf
from lancelake.pylance.util import sanitize_ts, td_to_micros
from lancelake.storage.location import Location
from lancelake.table.check.ensure import ensure_in_order
from lancelake.table.history import facts_of, history_in_numbers
from lancelake.table.open import AtVersion, Latest, open_snapshot
from lancelake.version import __version__

ExecuteResult = MergeStats

__all__ = [
    "DEFAULT_BLOB_BUFFER_SIZE",
    "LANCE_COMMIT_MESSAGE_KEY",
    "AlterColumn",
    "AutoCleanupConfig",
    "BatchUDF",
    "BatchUDFCheckpoint",
    "BlobFile",
    "Branch",
    "Branches",
    "BulkCommitResult",
    "CleanupExplanation",
    "CleanupStats",
    "ColumnOrdering",
    "Compaction",
    "CompactionMetrics",
    "DataFile",
    "DataStatistics",
    "DatasetBasePath",
    "DatasetDelta",
    "DatasetOptimizer",
    "DatasetStats",
    "DeleteResult",
    "DocumentGranularity",
    "ExecuteResult",
    "FieldStatistics",
    "FragmentMetadata",
    "FragmentWriteProgress",
    "FullTextQuery",
    "Index",
    "IndexConfig",
    "IndexDescription",
    "IndexFile",
    "IndexInformation",
    "LanceDataset",
    "LanceFragment",
    "LanceOperation",
    "LanceScanner",
    "LanceSchema",
    "LanceStats",
    "MergeInsertBuilder",
    "ScanStatistics",
    "ScannerBuilder",
    "Session",
    "SqlQuery",
    "SqlQueryBuilder",
    "SupportedDistributedIndices",
    "Tag",
    "Tags",
    "Transaction",
    "UpdateResult",
    "VectorIndexReader",
    "Version",
    "VersionRef",
    "__version__",
    "batch_udf",
    "sanitize_ts",
    "serialize_row_addrs",
    "td_to_micros",
    "write_dataset",
]

_NOT_WRITE_OPTIONS = (
    "data_obj",
    "uri",
    "schema",
    "mode",
    "storage_options",
    "namespace_client",
    "table_id",
    "session",
    "confine_to",
    "commit_lock",
)


class LanceDataset(
    DatasetChanges,
    DatasetColumns,
    DatasetRows,
    DatasetIndices,
    DatasetVectorModels,
    DatasetFacts,
    DatasetFiles,
    DatasetScans,
    DatasetSearch,
    DatasetReads,
    DatasetHistory,
    DatasetMaintenance,
    DatasetCleanup,
    DatasetMemWal,
    ArrowMethods,
    ArrowDataset,
):
    """One version of a table.

    Methods that change the table commit a new version and move this object to it. Other objects
    keep their version until `checkout_latest`.

    Examples:
        >>> ds
        LanceDataset('people.lance', version=1)
        >>> ds.to_table(columns=["id", "name"], filter="score > 2").to_pylist()
        [{'id': 2, 'name': 'bob'}, {'id': 3, 'name': 'cy'}]
    """

    def __init__(
        self,
        uri: str | Path,
        version: VersionLike | None = None,
        block_size: int | None = None,
        index_cache_size: int | None = None,
        metadata_cache_size: int | None = None,
        commit_lock: CommitLock | None = None,
        storage_options: dict[str, str] | None = None,
        serialized_manifest: bytes | None = None,
        default_scan_options: dict[str, Any] | None = None,
        metadata_cache_size_bytes: int | None = None,
        index_cache_size_bytes: int | None = None,
        read_params: dict[str, Any] | None = None,
        session: Session | None = None,
        namespace_client: Any = None,
        table_id: list[str] | None = None,
        namespace_client_managed_versioning: bool = False,
        base_store_params: dict[str, dict[str, str]] | None = None,
        *,
        confine_to: Iterable[str | Path] | None = None,
        **rest: Unpack[LegacyOptions],
    ) -> None:
        """Open a version; the namespace, if any, has already resolved the URI."""
        ensure_openable(
            {
                "serialized_manifest": serialized_manifest,
                "read_params": read_params,
                "namespace_client_managed_versioning": namespace_client_managed_versioning,
                "base_store_params": base_store_params,
                **rest,
            }
        )
        self._session = session or Session()
        location = locate(uri, storage_options, session=self._session, confine_to=confine_to)
        self._lock = commit_lock_of(commit_lock)
        self._default_scan_options = default_scan_options
        self._snapshot = open_snapshot(location, reference(version))
        self._uri = uri_of(uri)

    @classmethod
    def _of(
        cls,
        snapshot: Snapshot,
        default_scan_options: dict[str, Any] | None,
        uri: str | None = None,
        *,
        lock: CommitLock | None = None,
    ) -> LanceDataset:
        made = cls.__new__(cls)
        made._session = session_at(snapshot.location)
        made._lock = lock
        made._snapshot = snapshot
        made._default_scan_options = default_scan_options
        made._uri = snapshot.location.uri if uri is None else uri
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        place = (self._snapshot.location, self.version)
        is_guarded = self._lock is not None
        return (_reopen, (*place, self._default_scan_options, self._uri, is_guarded))

    def __copy__(self) -> LanceDataset:
        options, uri = self._default_scan_options, self._uri
        return LanceDataset._of(self._snapshot, options, uri, lock=self._lock)

    def __len__(self) -> int:
        return self.count_rows()

    def __repr__(self) -> str:
        return f"LanceDataset({self.uri!r}, version={self.version})"

    def _repr_html_(self) -> str:
        return dataset_html(self._snapshot)

    def session(self) -> Session:
        """Return the session of the dataset.

        Returns:
            The session, whose `memory://` tables other datasets can share.

        Examples:
            >>> again = lance.dataset("people.lance", session=ds.session())
            >>> again.count_rows()
            3
        """
        return self._session

    @property
    def uri(self) -> str:
        """Location of the table, as given.

        Examples:
            >>> ds.uri
            'people.lance'
        """
        return self._uri

    @property
    def version(self) -> int:
        """The open version.

        Examples:
            >>> ds.version
            1
        """
        return self._snapshot.version

    @property
    def latest_version(self) -> int:
        """The newest version of this version line.

        Examples:
            >>> old = lance.dataset("people.lance")
            >>> ds.delete("id = 1")
            {'num_deleted_rows': 1}
            >>> old.version, old.latest_version
            (1, 2)
        """
        return latest_version(self._snapshot.location).version

    def versions(self) -> list[Version]:
        """Return all versions, oldest first.

        Returns:
            One entry per version, with its number, time and metadata.

        Examples:
            >>> ds.insert(ds.head(1))
            >>> [each["version"] for each in ds.versions()]
            [1, 2]
        """
        return [version_of(facts) for facts in history_in_numbers(self._snapshot.location)]

    def get_version(self) -> Version:
        """Return the open version, in the form of `versions`.

        Returns:
            The number, the time and the metadata of the version.

        Examples:
            >>> ds.get_version()["version"]
            1
        """
        return version_of(facts_of(self._snapshot))

    def checkout_version(self, version: VersionLike) -> LanceDataset:
        """Return the table at another version, tag, or branch and version.

        Args:
            version: A version number, the name of a tag, or a pair of a branch and a version; None
                as the version means the newest one of the branch.

        Returns:
            A new object; this one keeps its version.

        Raises:
            VersionNotFoundError: The table does not have the version, or it was cleaned up.
            RefNotFoundError: The table has no such tag or branch.

        Examples:
            >>> ds.delete("id = 1")
            {'num_deleted_rows': 1}
            >>> ds.checkout_version(1).count_rows()
            3
        """
        place = self._snapshot
        found = open_snapshot(place.location, reference(version), main=place.main_location)
        return LanceDataset._of(found, self._default_scan_options, self._uri, lock=self._lock)

    def checkout_latest(self) -> None:
        """Move this object to the newest version.

        Examples:
            >>> other = lance.dataset("people.lance")
            >>> ds.insert(ds.head(1))
            >>> other.checkout_latest()
            >>> other.version
            2
        """
        self._snapshot = open_snapshot(self._snapshot.location, Latest())

    def get_fragments(self, filter: Any = None) -> list[LanceFragment]:
        """Return all fragments.

        Args:
            filter: Not supported.

        Returns:
            The fragments, in table order.

        Raises:
            InvalidRequestError: A filter is given.

        Examples:
            >>> [fragment.count_rows() for fragment in ds.get_fragments()]
            [3]
        """
        if filter is not None:
            raise InvalidRequestError("get_fragments() does not support filter yet")
        return [LanceFragment(self, number) for number in self._fragments()]

    def get_fragment(self, fragment_id: int) -> LanceFragment | None:
        """Return one fragment, or None.

        Args:
            fragment_id: The id of the fragment.

        Returns:
            The fragment; None if this version does not have it.

        Examples:
            >>> ds.get_fragment(0).count_rows()
            3
            >>> ds.get_fragment(7) is None
            True
        """
        return LanceFragment(self, fragment_id) if fragment_id in self._fragments() else None

    def validate(self) -> None:
        """Raise an error if files are missing, or rows, ids or indices are inconsistent.

        Raises:
            CorruptTableError: The version violates the format.

        Examples:
            >>> ds.validate()
        """
        ensure_in_order(self._snapshot)

    def _fragments(self) -> Mapping[FragmentId, Fragment]:
        return FragmentList.of(self._snapshot.manifest.fragments).by_id()


def write_dataset(
    data_obj: Any,
    uri: str | Path | LanceDataset | None = None,
    schema: pa.Schema | None = None,
    mode: WriteMode = "create",
    *,
    max_rows_per_file: int = MAX_ROWS_PER_FILE,
    max_rows_per_group: int | None = 1024,
    max_bytes_per_file: int = MAX_BYTES_PER_FILE,
    data_cache_bytes: int | None = None,
    max_page_bytes: int | None = None,
    commit_lock: CommitLock | None = None,
    progress: FragmentWriteProgress | Progress | None = None,
    storage_options: dict[str, str] | None = None,
    data_storage_version: str | None = None,
    use_legacy_format: bool | None = None,
    enable_v2_manifest_paths: bool = True,
    enable_stable_row_ids: bool = False,
    auto_cleanup_options: AutoCleanupConfig | None = None,
    commit_message: str | None = None,
    transaction_properties: dict[str, str] | None = None,
    initial_bases: list[DatasetBasePath] | None = None,
    target_bases: list[str] | None = None,
    target_all_bases: bool | None = None,
    base_store_params: dict[str, dict[str, str]] | None = None,
    external_blob_mode: ExternalBlobMode = "reference",
    allow_external_blob_outside_bases: bool = False,
    blob_pack_file_size_threshold: int | None = None,
    namespace_client: Any = None,
    table_id: list[str] | None = None,
    session: Session | None = None,
    schema_mode: Literal["merge"] | None = None,
    confine_to: Iterable[str | Path] | None = None,
    invalid_utf8: InvalidText = "error",
    **kwargs: Unpack[UncommittedOptions],
) -> LanceDataset:
    """Write rows to a new table, append them to a table, or overwrite a table.

    Args:
        data_obj: Arrow table, batch, reader or dataset, pandas or Polars data frame, list of dicts,
            or a dict of columns.
        uri: Path or URI of the table, or an open dataset.
        schema: Schema of data that has no types of its own.
        mode: `create` fails if the table exists, `overwrite` replaces all rows and the schema in a
            new version, `append` adds rows.
        max_rows_per_file: Rows per data file, at most.
        max_bytes_per_file: Bytes per data file, at most.
        commit_lock: Context manager that the commit holds.
        progress: Called for each fragment that is written.
        storage_options: Options and credentials of the object store.
        data_storage_version: Format version of the data files of a new table, such as `2.1`.
        enable_v2_manifest_paths: Name manifests so that the newest one is listed first.
        enable_stable_row_ids: Let rows keep their ids when they are moved; for new tables.
        auto_cleanup_options: Clean up old versions after every so many commits.
        commit_message: Message of the version.
        transaction_properties: Further properties of the transaction.
        initial_bases: Base paths to register if the table is created.
        target_bases: Names of the base paths to write data files to.
        target_all_bases: Write data files to all base paths; with True to the table's root as well.
        external_blob_mode: Store references to external blobs (`reference`), or their bytes.
        allow_external_blob_outside_bases: Accept external blobs outside of the base paths.
        namespace_client: Namespace to find the table in, together with `table_id`.
        table_id: Name of the table in the namespace.
        session: Session whose `memory://` tables are visible.
        schema_mode: With `merge`, columns that only the data has are added to the table.
        confine_to: As in `dataset`.
        invalid_utf8: `replace` replaces invalid UTF-8 in strings; `error` refuses it.
        **kwargs: Options that tune official Lance.

    Returns:
        The table at the new version.

    Raises:
        AlreadyExistsError: The table exists, and `mode` is `create`.
        SchemaMismatchError: The rows do not fit the columns of the table.
        ConflictError: A concurrent commit excludes this one.

    Examples:
        >>> new = lance.write_dataset({"id": [1, 2]}, "new.lance")
        >>> lance.write_dataset({"id": [3]}, new, mode="append").count_rows()
        3
    """
    options = given(locals(), without=_NOT_WRITE_OPTIONS)
    chosen = write_options(mode, **{**options, "commit_lock": lock_of(uri, commit_lock)})
    found = find_table(uri, namespace_client, table_id, storage_options, mode=mode)
    shared = session or Session()
    opened = uri._snapshot if isinstance(uri, LanceDataset) else None
    target = opened or locate(
        found.uri, found.storage_options, session=shared, confine_to=confine_to
    )
    rows = rows_with_blobs(data_obj, schema, external_blob_mode, found.storage_options)
    made = write_rows(rows, target, schema=schema, options=chosen)
    return LanceDataset._of(made, None, uri_of(found.uri), lock=chosen.choices.lock)


def _reopen(
    location: Location,
    version: int,
    default_scan_options: dict[str, Any] | None,
    uri: str,
    is_guarded: bool,
) -> LanceDataset:
    snapshot = open_snapshot(location, AtVersion(version))
    lock = missing_lock if is_guarded else None
    return LanceDataset._of(snapshot, default_scan_options, uri, lock=lock)
