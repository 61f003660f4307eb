"""Rows of one fragment: scans and deletes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lancelake.core.values.metadata import MAX_ROWS, Fragment, FragmentId, offset_of
from lancelake.errors import InvalidRequestError
from lancelake.pylance._dataset import arguments
from lancelake.pylance._dataset.scan_methods import DatasetScans
from lancelake.pylance._dataset.scanner import LanceScanner
from lancelake.pylance._dataset.scanner_builder import ScannerBuilder
from lancelake.pylance._values.fragment_metadata import FragmentMetadata, from_fragment
from lancelake.pylance._values.opened import (
    ColumnOrdering,
    OpenedDataset,
    describes_as,
    given,
    takes,
)

Orderings = list[ColumnOrdering | str]


class FragmentScans:
    """Methods that scan one fragment."""

    _ds: OpenedDataset

    @describes_as(DatasetScans.scanner)
    def scanner(
        self,
        *,
        columns: arguments.Columns = None,
        batch_size: int | None = None,
        filter: arguments.Filter = None,
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
        **kwargs: Unpack[arguments.FragmentScanOptions],
    ) -> LanceScanner:
        """Prepare a scan of this fragment.

        Args:
            batch_readahead: Batches to read ahead.
            **kwargs: Further arguments of `LanceDataset.scanner`, which describes the others too.

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

    @describes_as(scanner)
    def to_table(
        self,
        columns: arguments.Columns = None,
        filter: arguments.Filter = None,
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
        **kwargs: Unpack[arguments.FragmentTableOptions],
    ) -> pa.Table:
        """Read the fragment into memory.

        Args:
            **kwargs: Further arguments of `LanceDataset.scanner`, which describes the others too.

        Examples:
            >>> ds.get_fragment(0).to_table(["name"], "id = 2").to_pydict()
            {'name': ['bob']}
        """
        return self.scanner(**given(locals())).to_table()

    @describes_as(scanner)
    def to_pandas(
        self,
        columns: arguments.Columns = None,
        filter: arguments.Filter = None,
        limit: int | None = None,
        offset: int | None = None,
        batch_size: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        blob_mode: arguments.BlobModeName = "lazy",
        order_by: Orderings | None = None,
        **kwargs: Unpack[arguments.PandasOptions],
    ) -> Any:
        """Read the fragment into a pandas data frame.

        Args:
            blob_mode: Blobs become files (`lazy`), bytes (`bytes`) or descriptors (`descriptions`).
            **kwargs: Arguments of `pyarrow.Table.to_pandas`; `scanner` describes the others.

        Examples:
            >>> len(ds.get_fragment(0).to_pandas())
            3
        """
        scanned = given({**locals(), "kwargs": {}}, without=("blob_mode",))
        return self.scanner(**scanned).to_pandas(blob_mode=blob_mode, **kwargs)

    @takes(scanner)
    def to_batches(self, **kwargs: Any) -> Iterator[pa.RecordBatch]:
        """Read the fragment batch by batch.

        Examples:
            >>> [batch.num_rows for batch in ds.get_fragment(0).to_batches(batch_size=2)]
            [2, 1]
        """
        return self.scanner(**kwargs).to_batches()

    def count_rows(self, filter: arguments.Filter = None) -> int:
        """Count the live rows, or those that match a filter.

        Args:
            filter: SQL, or an expression of `pyarrow.compute`.

        Examples:
            >>> ds.get_fragment(0).count_rows("id > 1")
            2
        """
        return self.scanner(filter=filter, columns=[]).count_rows()

    def head(self, num_rows: int) -> pa.Table:
        """Return the first rows.

        Args:
            num_rows: Rows to return, at most.

        Examples:
            >>> ds.get_fragment(0).head(2).num_rows
            2
        """
        return self.scanner(limit=num_rows).to_table()


class FragmentDeletes(FragmentScans, ABC):
    """Methods that write deletion files, for a `LanceOperation.Delete`."""

    _ds: OpenedDataset
    _id: FragmentId

    @property
    @abstractmethod
    def _fragment(self) -> Fragment: ...

    @arguments.os_errors()
    def delete(self, predicate: arguments.Filter) -> FragmentMetadata | None:
        """Mark rows as deleted, for a later `LanceOperation.Delete`.

        Args:
            predicate: SQL, or an expression of `pyarrow.compute`.

        Returns:
            The new fragment; None if no row is left.

        Examples:
            >>> fragment = ds.get_fragment(0).delete("id = 1")
            >>> delete = lance.LanceOperation.Delete([fragment], [], "id = 1")
            >>> lance.LanceDataset.commit(ds, delete, read_version=1).count_rows()
            2
        """
        rows = self.scanner(columns=[], filter=predicate, with_row_address=True).to_table()
        addresses = rows.column(0).to_numpy()
        return self._without(BitMap(offset_of(addresses).astype(np.uint32)))

    def delete_rows(self, offsets: Iterable[int]) -> FragmentMetadata | None:
        """Mark rows as deleted by their offsets in the files.

        Args:
            offsets: Positions of the rows, those of deleted ones included.

        Returns:
            The new fragment; None if no row is left.

        Raises:
            InvalidRequestError: An offset is past the last row.

        Examples:
            >>> ds.get_fragment(0).delete_rows([0, 1]).num_deletions
            2
        """
        numbers = [int(offset) for offset in offsets]
        if any(not 0 <= number < MAX_ROWS for number in numbers):
            raise OverflowError("out of range integral type conversion attempted")
        rows = self._ds._table.physical_rows(self._fragment)
        beyond = [number for number in numbers if number >= rows]
        if beyond:
            problem = f"delete_rows offset {beyond[0]} is out of range for fragment {self._id}"
            raise InvalidRequestError(f"{problem} with {rows} rows", table=self._ds.uri)
        return self._without(BitMap(numbers))

    def validate(self) -> None:
        """Raise an error if files of the fragment are missing, or its rows are inconsistent.

        Raises:
            CorruptTableError: The fragment violates the format.

        Examples:
            >>> ds.get_fragment(0).validate()
        """
        self._ds._table.maintenance.ensure_in_order(fragment=self._id)

    def _without(self, rows: BitMap) -> FragmentMetadata | None:
        if not rows:
            return from_fragment(self._fragment)
        done = self._ds._table.mark_deleted({self._id: rows})
        return from_fragment(done.updated[0]) if done.updated else None
