"""`LanceDataset`: a table at a version, as in pylance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, Unpack

import pyarrow as pa

from lancelake.core.values.metadata import COMMIT_MESSAGE as LANCE_COMMIT_MESSAGE_KEY
from lancelake.core.values.metadata import Fragment, FragmentId, FragmentList
from lancelake.core.values.writes import MAX_BYTES_PER_FILE, MAX_ROWS_PER_FILE, CommitLock, Progress
from lancelake.errors import InvalidRequestError
from lancelake.pylance._dataset import arguments
from lancelake.pylance._dataset.arguments import DatasetBasePath
from lancelake.pylance._dataset.arrow_classes import ArrowDataset
from lancelake.pylance._dataset.changing import (
    BulkCommitResult,
    DatasetChanges,
    DeleteResult,
    UpdateResult,
)
from lancelake.pylance._dataset.columns import AlterColumn, DatasetColumns
from lancelake.pylance._dataset.description import (
    DatasetFacts,
    DatasetStats,
    DataStatistics,
    FieldStatistics,
    LanceStats,
)
from lancelake.pylance._dataset.index_values import (
    Index,
    IndexConfig,
    IndexDescription,
    IndexFile,
    IndexInformation,
    SupportedDistributedIndices,
)
from lancelake.pylance._dataset.indices_methods import DatasetIndices, VectorIndexReader
from lancelake.pylance._dataset.lance_operation import LanceOperation
from lancelake.pylance._dataset.maintenance import (
    CleanupExplanation,
    CleanupStats,
    DatasetMaintenance,
    DatasetOptimizer,
)
from lancelake.pylance._dataset.merge import MergeInsertBuilder, MergeStats
from lancelake.pylance._dataset.notebook import dataset_html
from lancelake.pylance._dataset.reading import DatasetReads
from lancelake.pylance._dataset.refs import Branch, Branches, Tag, Tags
from lancelake.pylance._dataset.scan_methods import serialize_row_addrs
from lancelake.pylance._dataset.scanner import LanceScanner, ScanStatistics
from lancelake.pylance._dataset.scanner_builder import ScannerBuilder, VectorSearchQuery
from lancelake.pylance._dataset.searching import SqlQuery, SqlQueryBuilder
from lancelake.pylance._dataset.shards import DatasetMemWal
from lancelake.pylance._dataset.state import IOStats, Session, locate, lock_of
from lancelake.pylance._dataset.transactions import Transaction
from lancelake.pylance._dataset.versions import (
    DatasetDelta,
    DatasetVersions,
    Version,
    VersionRef,
)
from lancelake.pylance._dataset.write import (
    AutoCleanupConfig,
    rows_with_blobs,
    write_options,
    write_rows,
)
from lancelake.pylance._values.opened import ColumnOrdering, given
from lancelake.pylance.blob import DEFAULT_BLOB_BUFFER_SIZE, BlobFile
from lancelake.pylance.fragment import DataFile, FragmentMetadata, LanceFragment, all_fragments
from lancelake.pylance.optimize import Compaction, CompactionMetrics
from lancelake.pylance.progress import FragmentWriteProgress
from lancelake.pylance.pydantic import model_rows, snake_case
from lancelake.pylance.query import DocumentGranularity, FullTextQuery
from lancelake.pylance.schema import LanceSchema
from lancelake.pylance.udf import BatchUDF, BatchUDFCheckpoint, batch_udf
from lancelake.pylance.util import sanitize_ts, td_to_micros
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
    "IOStats",
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
    "VectorSearchQuery",
    "Version",
    "VersionRef",
    "__version__",
    "batch_udf",
    "sanitize_ts",
    "serialize_row_addrs",
    "td_to_micros",
    "write_dataset",
]


class LanceDataset(
    DatasetVersions,
    DatasetChanges,
    DatasetColumns,
    DatasetIndices,
    DatasetReads,
    DatasetFacts,
    DatasetMaintenance,
    DatasetMemWal,
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

    @classmethod
    def from_pydantic_model(
        cls,
        model_class: type,
        data: list[Any],
        uri: str | Path | None = None,
        mode: arguments.WriteMode = "create",
        **kwargs: Unpack[arguments.ModelOptions],
    ) -> LanceDataset:
        """Write instances of a pydantic model to a table whose columns are those of the model.

        Args:
            model_class: The model.
            data: Instances of the model, at least one.
            uri: Path or URI of the table; by default the name of the model in snake case.
            mode: As in `write_dataset`.
            **kwargs: Further arguments of `write_dataset`.

        Returns:
            The table at the new version.

        Raises:
            UnknownDataError: This is no model, or `data` is not a list of its instances.
            InvalidRequestError: There are no instances.

        Examples:
            >>> import pydantic
            >>> class Person(pydantic.BaseModel):
            ...     id: int
            ...     name: str | None = None
            >>> lance.LanceDataset.from_pydantic_model(Person, [Person(id=1)], "new.lance").schema
            id: int64 not null
            name: string
        """
        rows = model_rows(model_class, data)
        return write_dataset(rows, uri or snake_case(model_class.__name__), mode=mode, **kwargs)

    def __len__(self) -> int:
        return self.count_rows()

    def __repr__(self) -> str:
        return f"LanceDataset({self.uri!r}, version={self.version})"

    def _repr_html_(self) -> str:
        return dataset_html(self._snapshot)

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
        return all_fragments(self)

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
        self._table.maintenance.ensure_in_order()

    def _fragments(self) -> Mapping[FragmentId, Fragment]:
        return FragmentList.of(self._snapshot.manifest.fragments).by_id()


def write_dataset(
    data_obj: Any,
    uri: str | Path | LanceDataset | None = None,
    schema: pa.Schema | None = None,
    mode: arguments.WriteMode = "create",
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
    external_blob_mode: arguments.ExternalBlobMode = "reference",
    allow_external_blob_outside_bases: bool = False,
    blob_pack_file_size_threshold: int | None = None,
    namespace_client: Any = None,
    table_id: list[str] | None = None,
    session: Session | None = None,
    schema_mode: Literal["merge"] | None = None,
    confine_to: Iterable[str | Path] | None = None,
    invalid_utf8: arguments.InvalidText = "error",
    replace_where: arguments.Filter = None,
    txn_app_id: str | None = None,
    txn_version: int | None = None,
    **kwargs: Unpack[arguments.UncommittedOptions],
) -> LanceDataset:
    """Write rows to a new table, append them to a table, or overwrite a table.

    Args:
        data_obj: Arrow table, batch, reader or dataset, pandas or Polars data frame, list of dicts
            or of pydantic models, or a dict of columns.
        uri: Path or URI of the table, or an open dataset.
        schema: Schema of data that has no types of its own.
        mode: `create` fails if the table exists, `overwrite` replaces all rows and the schema in a
            new version, `append` adds rows.
        max_rows_per_file: Rows per data file, at most.
        max_bytes_per_file: Bytes per data file, at most.
        commit_lock: Context manager that the commit holds.
        progress: Called for each fragment that is written.
        storage_options: Options and credentials of the object store.
        data_storage_version: Format version of the data files of a new table. By default `2.1`,
            or a newer one that the columns need.
        enable_v2_manifest_paths: Name manifests so that the newest one is listed first.
        enable_stable_row_ids: Let rows keep their ids when they are moved; for new tables.
        auto_cleanup_options: Clean up old versions automatically, after every `interval` commits.
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
        schema_mode: With `merge`, columns and struct fields that only the data has are added.
        confine_to: As in `dataset`.
        invalid_utf8: `replace` replaces invalid UTF-8 in strings; `error` refuses it.
        replace_where: With mode `overwrite`, replace only the rows that match this condition, and
            keep the columns of the table. Data that does not match it is refused.
        txn_app_id: Together with `txn_version` the identity of a write, which is committed at most
            once: if an earlier call with both committed it, its version is returned.
        txn_version: Number of the write within its application.
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
        >>> rows = {"id": [3, 3]}
        >>> lance.write_dataset(rows, new, mode="overwrite", replace_where="id = 3").count_rows()
        4
        >>> def nightly() -> int:
        ...     options = {"mode": "append", "txn_app_id": "nightly", "txn_version": 17}
        ...     return lance.write_dataset({"id": [5]}, "new.lance", **options).count_rows()
        >>> nightly(), nightly()
        (5, 5)
    """
    options = given(locals(), without=arguments.NOT_WRITE_OPTIONS)
    write = write_options(mode, **{**options, "commit_lock": lock_of(uri, commit_lock)})
    place = arguments.find_table(uri, namespace_client, table_id, storage_options, mode=mode)
    shared = session or Session()
    opened = uri._snapshot if isinstance(uri, LanceDataset) else None
    target = opened or locate(
        place.uri, place.storage_options, session=shared, confine_to=confine_to
    )
    rows = rows_with_blobs(data_obj, schema, external_blob_mode, place.storage_options)
    snapshot = write_rows(rows, target, schema=schema, options=write)
    return LanceDataset._of(snapshot, None, arguments.uri_of(place.uri), lock=write.choices.lock)
