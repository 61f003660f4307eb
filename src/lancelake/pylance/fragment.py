"""Fragments of a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads

from lancelake.data.existing_file import found_file
from lancelake.data.projection import stored_schema
from lancelake.data.write_task import Progress
from lancelake.errors import InvalidRequestError, SchemaMismatchError
from lancelake.format.arrow_schema import public_schema
from lancelake.format.fragment import Fragment
from lancelake.format.ids import FragmentId
from lancelake.pylance._dataset.columns import FragmentColumns
from lancelake.pylance._dataset.scanner import (
    Columns,
    Filter,
    LanceScanner,
    ScannerBuilder,
    request_columns,
    row_numbers,
)
from lancelake.pylance._dataset.writing import write_fragment, write_fragments, write_options
from lancelake.pylance._values.fragment_metadata import (
    DataFile,
    FragmentMetadata,
    from_data_file,
    from_fragment,
)
from lancelake.pylance._values.opened import OpenedDataset
from lancelake.pylance._values.ordering import ColumnOrdering
from lancelake.pylance.progress import FragmentWriteProgress
from lancelake.scan.count import live_rows, physical_rows
from lancelake.scan.request import ScanRequest
from lancelake.scan.take import take_from_fragment
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt, TableFiles


class LanceFragment(FragmentColumns, pads.Fragment):  # type: ignore[misc]  # pyarrow has no types
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
        location = Location.parse(dataset_uri, storage_options)
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

    def count_rows(self, filter: Filter = None) -> int:
        """Count the live rows, or those that match a filter."""
        return self.scanner(filter=filter, columns=[]).count_rows()

    def head(self, num_rows: int) -> pa.Table:
        """Return the first rows."""
        return self.scanner(limit=num_rows).to_table()

    def take(self, indices: Iterable[int] | pa.Array, columns: Columns = None) -> pa.Table:
        """Return rows by position among the live rows of the fragment."""
        request = ScanRequest(columns=request_columns(columns), fragment_ids=(self._fragment.id,))
        source = self._ds._snapshot
        return take_from_fragment(source, self._fragment, row_numbers(indices), request)

    def scanner(
        self,
        *,
        columns: Columns = None,
        batch_size: int | None = None,
        filter: Filter = None,
        limit: int | None = None,
        offset: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        batch_readahead: int = 16,
        blob_handling: str | None = None,
        order_by: list[ColumnOrdering | str] | None = None,
        **kwargs: Any,
    ) -> LanceScanner:
        """Return a scan of this fragment."""
        builder = ScannerBuilder(self._ds).with_fragments([self])
        builder.columns(columns).limit(limit).offset(offset).filter(filter)
        builder.with_row_id(with_row_id).with_row_address(with_row_address)
        builder.batch_readahead(batch_readahead).blob_handling(blob_handling).order_by(order_by)
        if batch_size is not None:
            builder.batch_size(batch_size)
        return builder.apply_defaults(kwargs).to_scanner()

    def to_batches(self, **kwargs: Any) -> Iterator[pa.RecordBatch]:
        """Scan batch by batch; takes the arguments of `scanner`."""
        return self.scanner(**kwargs).to_batches()

    def to_table(self, columns: Columns = None, filter: Filter = None, **kwargs: Any) -> pa.Table:
        """Scan into memory; takes the arguments of `scanner`."""
        return self.scanner(columns=columns, filter=filter, **kwargs).to_table()

    def to_pandas(self, **kwargs: Any) -> Any:
        """Scan into a pandas data frame; takes the arguments of `scanner`."""
        return self.scanner(**kwargs).to_pandas()

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


__all__ = ["DataFile", "FragmentMetadata", "FragmentSession", "LanceFragment", "write_fragments"]
