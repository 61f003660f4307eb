"""Fragments of a table."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lancelake.data.existing_file import found_file
from lancelake.data.projection import stored_schema
from lancelake.data.write_task import MAX_BYTES_PER_FILE, Progress
from lancelake.errors import InvalidRequestError, SchemaMismatchError
from lancelake.format.arrow_schema import public_schema
from lancelake.format.fragment import Fragment
from lancelake.format.ids import FragmentId
from lancelake.pylance._dataset.arrow_classes import ArrowFragment
from lancelake.pylance._dataset.columns import FragmentColumns
from lancelake.pylance._dataset.fragment_deletes import FragmentDeletes
from lancelake.pylance._dataset.namespace_tables import find_table
from lancelake.pylance._dataset.notebook import fragment_html
from lancelake.pylance._dataset.scan_arguments import Columns, request_columns, row_numbers
from lancelake.pylance._dataset.session import Session, locate
from lancelake.pylance._dataset.writing import write_fragment, write_fragments, write_options
from lancelake.pylance._values.fragment_metadata import (
    DataFile,
    DeletionFile,
    FragmentMetadata,
    RowDatasetVersionMeta,
    RowIdMeta,
    RowIdSequence,
    from_data_file,
    from_fragment,
)
from lancelake.pylance._values.opened import OpenedDataset
from lancelake.pylance.progress import FragmentWriteProgress, NoopFragmentWriteProgress
from lancelake.pylance.udf import BatchUDF
from lancelake.scan.count import live_rows, physical_rows
from lancelake.scan.request import ScanRequest
from lancelake.scan.take import take_from_fragment
from lancelake.storage.table_files import FileAt, TableFiles


class LanceFragment(FragmentDeletes, FragmentColumns, ArrowFragment):
    """A fragment of one version of a table."""

    def __init__(self, dataset: OpenedDataset, fragment_id: int) -> None:
        self._ds = dataset
        self._id = FragmentId(fragment_id)
        # Fragments of the open version; each is decoded on demand.
        self._entries = dataset._fragments()
        if self._id not in self._entries:
            raise InvalidRequestError(f"fragment {fragment_id} does not exist", table=dataset.uri)

    @property
    def _fragment(self) -> Fragment:
        return self._entries[self._id]

    def __repr__(self) -> str:
        paths = [file.path for file in self._fragment.files]
        deleted = self.deletion_file()
        rest = "" if deleted is None else f", deletion_file={deleted!r}"
        return f"LanceFileFragment(id={self.fragment_id}, data_files={paths}{rest})"

    def _repr_html_(self) -> str:
        return fragment_html(self._fragment)

    def __reduce__(self) -> tuple[Any, ...]:
        return (LanceFragment, (self._ds, self.fragment_id))

    @staticmethod
    def create(
        dataset_uri: str | Path,
        data: Any,
        fragment_id: int | None = None,
        schema: pa.Schema | None = None,
        max_rows_per_group: int | None = 1024,
        progress: FragmentWriteProgress | Progress | None = None,
        mode: str = "append",
        *,
        data_storage_version: str | None = None,
        use_legacy_format: bool | None = None,
        storage_options: dict[str, str] | None = None,
        namespace_client: Any = None,
        table_id: list[str] | None = None,
        session: Session | None = None,
        **rest: Any,
    ) -> FragmentMetadata:
        """Write all rows to one uncommitted data file."""
        options = write_options(
            mode,
            progress=progress,
            data_storage_version=data_storage_version,
            use_legacy_format=use_legacy_format,
            **rest,
        )
        if not isinstance(dataset_uri, str | Path):
            raise TypeError(f"dataset_uri must be str or Path, got {type(dataset_uri)}")
        found = find_table(
            None if table_id else dataset_uri, namespace_client, table_id, storage_options
        )
        location = locate(found.uri, found.storage_options, session=session)
        return from_fragment(
            write_fragment(data, location, schema, fragment_id=fragment_id, options=options)
        )

    @staticmethod
    def create_from_file(
        filename: str, dataset: OpenedDataset, fragment_id: int
    ) -> FragmentMetadata:
        """Describe an uncommitted data file of a table; it must have every column."""
        snapshot = dataset._snapshot
        table = snapshot.manifest.schema
        found = found_file(snapshot.files, filename, table)
        if found.schema.names != table.names:
            expected, names = ", ".join(table.names), ", ".join(found.schema.names)
            problem = f"expected: [{expected}], actual: [{names}]"
            raise SchemaMismatchError(f"Append with different schema: {problem}", path=filename)
        return FragmentMetadata(fragment_id, [from_data_file(found.entry)], found.rows)

    @property
    def fragment_id(self) -> FragmentId:
        """The id of the fragment."""
        return self._id

    @property
    def metadata(self) -> FragmentMetadata:
        """The fragment's metadata in the manifest."""
        return from_fragment(self._fragment)

    @property
    def schema(self) -> pa.Schema:
        """Schema of the table."""
        return self._ds.schema

    @property
    def physical_schema(self) -> pa.Schema:
        """Schema of the columns in the fragment's files."""
        return public_schema(stored_schema(self._fragment, self._ds._snapshot.manifest.schema))

    @property
    def partition_expression(self) -> Any:
        """Not supported, as in pylance."""
        raise NotImplementedError("partitioning not yet supported")

    @property
    def physical_rows(self) -> int:
        """Number of rows in the files, including deleted ones."""
        return physical_rows(*self._places(), self._fragment)

    @property
    def num_deletions(self) -> int:
        """Number of deleted rows."""
        return self.physical_rows - live_rows(*self._places(), self._fragment)

    def data_files(self) -> list[DataFile]:
        """The data files of the fragment."""
        return list(self.metadata.files)

    def deletion_file(self) -> str | None:
        """Path of the deletion file, if there is one."""
        entry = self._fragment.deletion_file
        if entry is None:
            return None
        files, _ = self._places()
        return files.deletion_file(self._fragment.id, entry).path

    def take(self, indices: Iterable[int] | pa.Array, columns: Columns = None) -> pa.Table:
        """Return rows by position among the live rows of the fragment."""
        request = ScanRequest(columns=request_columns(columns), fragment_ids=(self._fragment.id,))
        source = self._ds._snapshot
        return take_from_fragment(source, self._fragment, row_numbers(indices), request)

    def open_session(
        self, columns: Columns = None, with_row_address: bool | None = None
    ) -> FragmentSession:
        """Return a reader for many calls of `take` with the same columns."""
        return FragmentSession(self, columns, with_row_address=bool(with_row_address))

    def _places(self) -> tuple[TableFiles, FileAt]:
        source = self._ds._snapshot
        return source.files, source.manifest_at


class FragmentSession:
    """Takes rows of one fragment repeatedly, with the same columns."""

    def __init__(
        self, fragment: LanceFragment, columns: Columns, *, with_row_address: bool
    ) -> None:
        self._fragment = fragment
        self._request = ScanRequest(
            columns=request_columns(columns),
            with_row_address=with_row_address,
            fragment_ids=(fragment.fragment_id,),
        )

    def take(self, indices: Iterable[int] | pa.Array | np.ndarray) -> pa.Table:
        """Return rows by position among the live rows of the fragment."""
        source = self._fragment._ds._snapshot
        numbers = row_numbers(indices)
        return take_from_fragment(source, self._fragment._fragment, numbers, self._request)


DEFAULT_MAX_BYTES_PER_FILE = MAX_BYTES_PER_FILE

__all__ = [
    "DEFAULT_MAX_BYTES_PER_FILE",
    "BatchUDF",
    "DataFile",
    "DeletionFile",
    "FragmentMetadata",
    "FragmentSession",
    "FragmentWriteProgress",
    "LanceFragment",
    "NoopFragmentWriteProgress",
    "RowDatasetVersionMeta",
    "RowIdMeta",
    "RowIdSequence",
    "write_fragments",
]
