"""Fragment methods that scan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Unpack

import pyarrow as pa

from lancelake.pylance._dataset.arguments.options import (
    BlobModeName,
    FragmentScanOptions,
    FragmentTableOptions,
    PandasOptions,
)
from lancelake.pylance._dataset.arguments.scan_arguments import Columns, Filter
from lancelake.pylance._dataset.scanning.scanner import LanceScanner
from lancelake.pylance._dataset.scanning.scanner_builder import ScannerBuilder
from lancelake.pylance._values.arguments import given
from lancelake.pylance._values.opened import OpenedDataset
from lancelake.pylance._values.ordering import ColumnOrdering

Orderings = list[ColumnOrdering | str]


class FragmentScans:
    """Methods that scan one fragment."""

    _ds: OpenedDataset

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
        order_by: Orderings | None = None,
        use_scalar_index: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        include_deleted_rows: bool | None = None,
        batch_size_bytes: int | None = None,
        strict_batch_size: bool | None = None,
        **kwargs: Unpack[FragmentScanOptions],
    ) -> LanceScanner:
        """Prepare a scan of this fragment.

        Args:
            columns: Names, or SQL expressions by name; by default all columns.
            batch_size: Rows per batch, at most.
            filter: SQL, or an expression of `pyarrow.compute`.
            limit: Rows to return, at most.
            offset: Rows to skip.
            with_row_id: Add the column `_rowid`.
            with_row_address: Add the column `_rowaddr`.
            batch_readahead: Batches to read ahead.
            blob_handling: `all_binary` returns blobs as bytes, other values return descriptors.
            order_by: Sort the rows by these columns.
            use_scalar_index: Let indices find the rows that match the filter.
            io_buffer_size: Ignored.
            late_materialization: Columns to read after the filter.
            include_deleted_rows: Include deleted rows, with a null row id.
            batch_size_bytes: Bytes per batch, at most.
            strict_batch_size: Return batches of exactly `batch_size` rows, except the last.
            **kwargs: Further arguments of `LanceDataset.scanner`.

        Returns:
            The scan, not yet started.

        Examples:
            >>> ds.get_fragment(0).scanner(columns=["id"], limit=1).to_table().to_pydict()
            {'id': [1]}
        """
        fragment: Any = self
        builder = ScannerBuilder(self._ds).with_fragments([fragment])
        return builder.apply_defaults(given(locals(), without=("fragment", "builder"))).to_scanner()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export all rows to another library."""
        return self.scanner().__arrow_c_stream__(requested_schema)

    def to_table(
        self,
        columns: Columns = None,
        filter: Filter = None,
        limit: int | None = None,
        offset: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        blob_handling: str | None = None,
        order_by: Orderings | None = None,
        use_scalar_index: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        include_deleted_rows: bool | None = None,
        batch_size_bytes: int | None = None,
        strict_batch_size: bool | None = None,
        **kwargs: Unpack[FragmentTableOptions],
    ) -> pa.Table:
        """Read the fragment into memory.

        Args:
            columns: Names, or SQL expressions by name; by default all columns.
            filter: SQL, or an expression of `pyarrow.compute`.
            limit: Rows to return, at most.
            offset: Rows to skip.
            with_row_id: Add the column `_rowid`.
            with_row_address: Add the column `_rowaddr`.
            blob_handling: `all_binary` returns blobs as bytes.
            order_by: Sort the rows by these columns.
            use_scalar_index: Let indices find the rows that match the filter.
            io_buffer_size: Ignored.
            late_materialization: Columns to read after the filter.
            include_deleted_rows: Include deleted rows.
            batch_size_bytes: Bytes per batch, at most.
            strict_batch_size: Return batches of exactly the requested size.
            **kwargs: Further arguments of `LanceDataset.scanner`.

        Returns:
            The rows.

        Examples:
            >>> ds.get_fragment(0).to_table(["name"], "id = 2").to_pydict()
            {'name': ['bob']}
        """
        return self.scanner(**given(locals())).to_table()

    def to_pandas(
        self,
        columns: Columns = None,
        filter: Filter = None,
        limit: int | None = None,
        offset: int | None = None,
        batch_size: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        blob_mode: BlobModeName = "lazy",
        order_by: Orderings | None = None,
        **kwargs: Unpack[PandasOptions],
    ) -> Any:
        """Read the fragment into a pandas data frame.

        Args:
            columns: Names, or SQL expressions by name; by default all columns.
            filter: SQL, or an expression of `pyarrow.compute`.
            limit: Rows to return, at most.
            offset: Rows to skip.
            batch_size: Rows per batch, at most.
            with_row_id: Add the column `_rowid`.
            with_row_address: Add the column `_rowaddr`.
            blob_mode: Blobs become files (`lazy`), bytes (`bytes`) or descriptors (`descriptions`).
            order_by: Sort the rows by these columns.
            **kwargs: Arguments of `pyarrow.Table.to_pandas`.

        Returns:
            The rows as a `pandas.DataFrame`.

        Examples:
            >>> len(ds.get_fragment(0).to_pandas())
            3
        """
        scanned = given({**locals(), "kwargs": {}}, without=("blob_mode",))
        return self.scanner(**scanned).to_pandas(blob_mode=blob_mode, **kwargs)

    def to_batches(
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
        order_by: Orderings | None = None,
        use_scalar_index: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        include_deleted_rows: bool | None = None,
        batch_size_bytes: int | None = None,
        strict_batch_size: bool | None = None,
        **kwargs: Unpack[FragmentScanOptions],
    ) -> Iterator[pa.RecordBatch]:
        """Read the fragment batch by batch.

        Args:
            columns: Names, or SQL expressions by name; by default all columns.
            batch_size: Rows per batch, at most.
            filter: SQL, or an expression of `pyarrow.compute`.
            limit: Rows to return, at most.
            offset: Rows to skip.
            with_row_id: Add the column `_rowid`.
            with_row_address: Add the column `_rowaddr`.
            batch_readahead: Batches to read ahead.
            blob_handling: `all_binary` returns blobs as bytes.
            order_by: Sort the rows by these columns.
            use_scalar_index: Let indices find the rows that match the filter.
            io_buffer_size: Ignored.
            late_materialization: Columns to read after the filter.
            include_deleted_rows: Include deleted rows.
            batch_size_bytes: Bytes per batch, at most.
            strict_batch_size: Return batches of exactly the requested size.
            **kwargs: Further arguments of `LanceDataset.scanner`.

        Returns:
            The batches.

        Examples:
            >>> [batch.num_rows for batch in ds.get_fragment(0).to_batches(batch_size=2)]
            [2, 1]
        """
        return self.scanner(**given(locals())).to_batches()

    def count_rows(self, filter: Filter = None) -> int:
        """Count the live rows, or those that match a filter.

        Args:
            filter: SQL, or an expression of `pyarrow.compute`.

        Returns:
            The number of rows.

        Examples:
            >>> ds.get_fragment(0).count_rows("id > 1")
            2
        """
        return self.scanner(filter=filter, columns=[]).count_rows()

    def head(self, num_rows: int) -> pa.Table:
        """Return the first rows.

        Args:
            num_rows: Rows to return, at most.

        Returns:
            The rows.

        Examples:
            >>> ds.get_fragment(0).head(2).num_rows
            2
        """
        return self.scanner(limit=num_rows).to_table()
