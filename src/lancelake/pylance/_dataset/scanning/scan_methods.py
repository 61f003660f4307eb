"""Dataset methods that scan, as in pylance."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Unpack
from uuid import UUID

import numpy as np
import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.format import row_address_set
from lancelake.format.row_address import by_fragment
from lancelake.pylance._dataset.arguments.options import (
    BatchScanOptions,
    BlobModeName,
    PandasOptions,
    TableScanOptions,
)
from lancelake.pylance._dataset.arguments.os_errors import names_dataset
from lancelake.pylance._dataset.arguments.scan_arguments import Columns
from lancelake.pylance._dataset.scanning.scanner import LanceScanner
from lancelake.pylance._dataset.scanning.scanner_builder import ScannerBuilder
from lancelake.pylance._dataset.scanning.search_options import SearchFilter
from lancelake.pylance._values.arguments import given
from lancelake.pylance._values.opened import OpenedFragment
from lancelake.pylance._values.ordering import ColumnOrdering

_BUILDER_NAMES = {
    "fragments": "with_fragments",
    "full_text_query": "full_text_search",
    "index_segments": "with_index_segments",
}
"""Arguments of a scan whose method of the builder has another name."""


def serialize_row_addrs(addrs: Iterable[int]) -> bytes:
    """Encode row ids for `row_addr_allowlist` and `row_addr_blocklist` of a scan.

    Args:
        addrs: The row ids.

    Returns:
        The encoded set.

    Examples:
        >>> from lancelake.pylance.dataset import serialize_row_addrs
        >>> ds.scanner(["id"], row_addr_allowlist=serialize_row_addrs([0, 2])).to_table().num_rows
        2
    """
    numbers = np.fromiter(map(operator.index, addrs), dtype=np.uint64)
    return row_address_set.encode(by_fragment(numbers))


class DatasetScans:
    """Methods that scan the open version."""

    _snapshot: Snapshot
    _default_scan_options: dict[str, Any] | None

    @names_dataset
    def scanner(
        self,
        columns: Columns = None,
        filter: SearchFilter = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: dict[str, Any] | None = None,
        batch_size: int | None = None,
        batch_size_bytes: int | None = None,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        scan_in_order: bool | None = None,
        fragments: Iterable[OpenedFragment] | None = None,
        index_segments: Iterable[str | UUID] | None = None,
        full_text_query: Any = None,
        *,
        prefilter: bool | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        use_stats: bool | None = None,
        fast_search: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        blob_handling: str | None = None,
        use_scalar_index: bool | None = None,
        include_deleted_rows: bool | None = None,
        scan_stats_callback: Callable[[Any], None] | None = None,
        strict_batch_size: bool | None = None,
        order_by: list[ColumnOrdering | str] | None = None,
        disable_scoring_autoprojection: bool | None = None,
        row_addr_allowlist: bytes | None = None,
        row_addr_blocklist: bytes | None = None,
    ) -> LanceScanner:
        """Prepare a scan.

        Args:
            columns: Names, or SQL expressions by name; by default all columns.
            filter: SQL, an expression of `pyarrow.compute`, or a second search (see
                `ScannerBuilder.filter`).
            limit: Rows to return, at most.
            offset: Rows to skip.
            nearest: Vector search: `column`, `q`, `k` and the other arguments of
                `ScannerBuilder.nearest`.
            batch_size: Rows per batch, at most.
            batch_size_bytes: Bytes per batch, at most, unless a single row is larger.
            batch_readahead: Batches to read ahead within a fragment.
            fragment_readahead: Fragments to read ahead.
            scan_in_order: Ignored: rows are always returned in order.
            fragments: Scan only these fragments.
            index_segments: Not supported.
            full_text_query: Text, or a query of `lancelake.pylance.query`.
            prefilter: Search only rows that match the filter, instead of filtering what a search
                returns.
            with_row_id: Add the column `_rowid`.
            with_row_address: Add the column `_rowaddr`.
            use_stats: Ignored: only legacy files have statistics.
            fast_search: Skip fragments that the searched indices do not cover.
            io_buffer_size: Ignored: memory is bounded by the width of rows.
            late_materialization: Columns to read after the filter; True for all, False for none.
            blob_handling: `all_binary` returns blobs as bytes, other values return descriptors.
            use_scalar_index: Let indices find the rows that match the filter; True by default.
            include_deleted_rows: Include deleted rows, with a null row id.
            scan_stats_callback: Called with the statistics of the scan after its last row.
            strict_batch_size: Return batches of exactly `batch_size` rows, except the last.
            order_by: Sort the rows by these columns.
            disable_scoring_autoprojection: Return the score of a search only if `columns` has it.
            row_addr_allowlist: Scan only these rows; a result of `serialize_row_addrs`.
            row_addr_blocklist: Leave these rows out; a result of `serialize_row_addrs`.

        Returns:
            The scan, which is validated and not yet started.

        Raises:
            ColumnNotFoundError: The table has no such column.
            InvalidExpressionError: The filter or an expression cannot be parsed or bound.

        Examples:
            >>> scan = ds.scanner(columns={"double": "score * 2"}, filter="id > 1")
            >>> scan.to_table().to_pydict()
            {'double': [5.0, 7.0]}
        """
        asked = given(locals(), without=("row_addr_allowlist", "row_addr_blocklist"))
        dataset: Any = self
        builder = ScannerBuilder(dataset).apply_defaults(self._default_scan_options or {})
        builder.apply_defaults({_BUILDER_NAMES.get(k, k): v for k, v in asked.items()})
        if row_addr_allowlist is not None or row_addr_blocklist is not None:
            builder.row_addr_prefilter(row_addr_allowlist, row_addr_blocklist)
        return builder.to_scanner()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export all rows to another library."""
        return self.scanner().__arrow_c_stream__(requested_schema)

    def to_table(
        self,
        columns: Columns = None,
        filter: SearchFilter = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: dict[str, Any] | None = None,
        batch_size: int | None = None,
        batch_size_bytes: int | None = None,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        scan_in_order: bool | None = None,
        *,
        prefilter: bool | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        use_stats: bool | None = None,
        fast_search: bool | None = None,
        full_text_query: Any = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        blob_handling: str | None = None,
        use_scalar_index: bool | None = None,
        include_deleted_rows: bool | None = None,
        order_by: list[ColumnOrdering | str] | None = None,
        disable_scoring_autoprojection: bool | None = None,
        **kwargs: Unpack[TableScanOptions],
    ) -> pa.Table:
        """Read into memory.

        Args:
            columns: Names, or SQL expressions by name; by default all columns.
            filter: SQL, or an expression of `pyarrow.compute`.
            limit: Rows to return, at most.
            offset: Rows to skip.
            nearest: Vector search, as in `scanner`.
            batch_size: Rows per batch, at most.
            batch_size_bytes: Bytes per batch, at most.
            batch_readahead: Batches to read ahead within a fragment.
            fragment_readahead: Fragments to read ahead.
            scan_in_order: Ignored: rows are always returned in order.
            prefilter: Apply the filter before a search.
            with_row_id: Add the column `_rowid`.
            with_row_address: Add the column `_rowaddr`.
            use_stats: Ignored.
            fast_search: Skip fragments that the searched indices do not cover.
            full_text_query: Text search, as in `scanner`.
            io_buffer_size: Ignored.
            late_materialization: Columns to read after the filter.
            blob_handling: `all_binary` returns blobs as bytes.
            use_scalar_index: Let indices find the rows that match the filter.
            include_deleted_rows: Include deleted rows.
            order_by: Sort the rows by these columns.
            disable_scoring_autoprojection: Return scores only on request.
            **kwargs: Further arguments of `scanner`.

        Returns:
            The rows.

        Raises:
            ColumnNotFoundError: The table has no such column.
            InvalidExpressionError: The filter or an expression cannot be parsed or bound.

        Examples:
            >>> ds.to_table(columns=["name"], filter="score > 2").to_pydict()
            {'name': ['bob', 'cy']}
            >>> nearest = {"column": "vector", "q": [0, 1], "k": 1}
            >>> docs.to_table(columns=["id"], nearest=nearest).to_pylist()
            [{'id': 2, '_distance': 0.0}]
        """
        return self.scanner(**given(locals())).to_table()

    def to_pandas(
        self,
        columns: Columns = None,
        filter: SearchFilter = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: dict[str, Any] | None = None,
        batch_size: int | None = None,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        scan_in_order: bool | None = None,
        *,
        prefilter: bool | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        use_stats: bool | None = None,
        fast_search: bool | None = None,
        full_text_query: Any = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        blob_mode: BlobModeName = "lazy",
        use_scalar_index: bool | None = None,
        include_deleted_rows: bool | None = None,
        order_by: list[ColumnOrdering | str] | None = None,
        disable_scoring_autoprojection: bool | None = None,
        **kwargs: Unpack[PandasOptions],
    ) -> Any:
        """Read into a pandas data frame.

        Args:
            columns: Names, or SQL expressions by name; by default all columns.
            filter: SQL, or an expression of `pyarrow.compute`.
            limit: Rows to return, at most.
            offset: Rows to skip.
            nearest: Vector search, as in `scanner`.
            batch_size: Rows per batch, at most.
            batch_readahead: Batches to read ahead within a fragment.
            fragment_readahead: Fragments to read ahead.
            scan_in_order: Ignored: rows are always returned in order.
            prefilter: Apply the filter before a search.
            with_row_id: Add the column `_rowid`.
            with_row_address: Add the column `_rowaddr`.
            use_stats: Ignored.
            fast_search: Skip fragments that the searched indices do not cover.
            full_text_query: Text search, as in `scanner`.
            io_buffer_size: Ignored.
            late_materialization: Columns to read after the filter.
            blob_mode: Blobs become files (`lazy`), bytes (`bytes`) or descriptors (`descriptions`).
            use_scalar_index: Let indices find the rows that match the filter.
            include_deleted_rows: Include deleted rows.
            order_by: Sort the rows by these columns.
            disable_scoring_autoprojection: Return scores only on request.
            **kwargs: Arguments of `pyarrow.Table.to_pandas`.

        Returns:
            The rows as a `pandas.DataFrame`.

        Raises:
            ColumnNotFoundError: The table has no such column.
            InvalidExpressionError: The filter or an expression cannot be parsed or bound.

        Examples:
            >>> float(ds.to_pandas(columns=["score"])["score"].mean())
            2.5
        """
        scanned = given({**locals(), "kwargs": {}}, without=("blob_mode",))
        return self.scanner(**scanned).to_pandas(blob_mode=blob_mode, **kwargs)

    def to_batches(
        self,
        columns: Columns = None,
        filter: SearchFilter = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: dict[str, Any] | None = None,
        batch_size: int | None = None,
        batch_size_bytes: int | None = None,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        scan_in_order: bool | None = None,
        *,
        prefilter: bool | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        use_stats: bool | None = None,
        full_text_query: Any = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        blob_handling: str | None = None,
        use_scalar_index: bool | None = None,
        strict_batch_size: bool | None = None,
        order_by: list[ColumnOrdering | str] | None = None,
        disable_scoring_autoprojection: bool | None = None,
        **kwargs: Unpack[BatchScanOptions],
    ) -> Iterator[pa.RecordBatch]:
        """Read batch by batch.

        Args:
            columns: Names, or SQL expressions by name; by default all columns.
            filter: SQL, or an expression of `pyarrow.compute`.
            limit: Rows to return, at most.
            offset: Rows to skip.
            nearest: Vector search, as in `scanner`.
            batch_size: Rows per batch, at most.
            batch_size_bytes: Bytes per batch, at most.
            batch_readahead: Batches to read ahead within a fragment.
            fragment_readahead: Fragments to read ahead.
            scan_in_order: Ignored: rows are always returned in order.
            prefilter: Apply the filter before a search.
            with_row_id: Add the column `_rowid`.
            with_row_address: Add the column `_rowaddr`.
            use_stats: Ignored.
            full_text_query: Text search, as in `scanner`.
            io_buffer_size: Ignored.
            late_materialization: Columns to read after the filter.
            blob_handling: `all_binary` returns blobs as bytes.
            use_scalar_index: Let indices find the rows that match the filter.
            strict_batch_size: Return batches of exactly `batch_size` rows, except the last.
            order_by: Sort the rows by these columns.
            disable_scoring_autoprojection: Return scores only on request.
            **kwargs: Further arguments of `scanner`.

        Returns:
            The batches; memory does not grow with the number of rows.

        Raises:
            ColumnNotFoundError: The table has no such column.
            InvalidExpressionError: The filter or an expression cannot be parsed or bound.

        Examples:
            >>> [batch.num_rows for batch in ds.to_batches(batch_size=2)]
            [2, 1]
        """
        return self.scanner(**given(locals())).to_batches()
