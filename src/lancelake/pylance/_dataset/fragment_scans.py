"""Fragment methods that scan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from lancelake.pylance._dataset.scan_arguments import Columns, Filter
from lancelake.pylance._dataset.scanner import LanceScanner, ScannerBuilder
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
        **kwargs: Any,
    ) -> LanceScanner:
        """Return a scan of this fragment; `kwargs` are further methods of `ScannerBuilder`."""
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
        **kwargs: Any,
    ) -> pa.Table:
        """Scan into memory; `kwargs` are further arguments of `scanner`."""
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
        blob_mode: str = "lazy",
        order_by: Orderings | None = None,
        **kwargs: Any,
    ) -> Any:
        """Scan into a pandas data frame; `kwargs` are those of `pyarrow.Table.to_pandas`."""
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
        **kwargs: Any,
    ) -> Iterator[pa.RecordBatch]:
        """Scan batch by batch; `kwargs` are further arguments of `scanner`."""
        return self.scanner(**given(locals())).to_batches()

    def count_rows(self, filter: Filter = None) -> int:
        """Count the live rows, or those that match a filter."""
        return self.scanner(filter=filter, columns=[]).count_rows()

    def head(self, num_rows: int) -> pa.Table:
        """Return the first rows."""
        return self.scanner(limit=num_rows).to_table()
