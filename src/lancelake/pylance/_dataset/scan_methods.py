"""Methods that scan, count and sample rows.

pyarrow's own methods work on a C++ object that has no rows (`arrow_classes`): every public one must
be overridden here or in another mixin.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Unpack
from uuid import UUID

import numpy as np
import pyarrow as pa

from lancelake.core.values.metadata import by_fragment, row_address
from lancelake.errors import InvalidRequestError, naming
from lancelake.pylance._dataset import arguments
from lancelake.pylance._dataset.scanner import LanceScanner
from lancelake.pylance._dataset.scanner_builder import ScannerBuilder, SearchFilter
from lancelake.pylance._dataset.state import DatasetState
from lancelake.pylance._values.opened import (
    ColumnOrdering,
    OpenedFragment,
    describes_as,
    given,
    takes,
)

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

    Examples:
        >>> from lancelake.pylance.dataset import serialize_row_addrs
        >>> ds.scanner(["id"], row_addr_allowlist=serialize_row_addrs([0, 2])).to_table().num_rows
        2
    """
    numbers = np.fromiter(map(operator.index, addrs), dtype=np.uint64)
    return row_address.encode(by_fragment(numbers))


class DatasetScans(DatasetState):
    """Methods that scan the open version, and count its rows."""

    def scanner(
        self,
        columns: arguments.Columns = None,
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

        Raises:
            ColumnNotFoundError: The table has no such column.
            InvalidExpressionError: The filter or an expression cannot be parsed or bound.

        Examples:
            >>> scan = ds.scanner(columns={"double": "score * 2"}, filter="id > 1")
            >>> scan.to_table().to_pydict()
            {'double': [5.0, 7.0]}
        """
        options = given(locals(), without=("row_addr_allowlist", "row_addr_blocklist"))
        dataset: Any = self
        with naming(self._snapshot.location.uri, self._snapshot.version):
            builder = ScannerBuilder(dataset).apply_defaults(self._default_scan_options or {})
            builder.apply_defaults({_BUILDER_NAMES.get(k, k): v for k, v in options.items()})
            if row_addr_allowlist is not None or row_addr_blocklist is not None:
                builder.row_addr_prefilter(row_addr_allowlist, row_addr_blocklist)
            return builder.to_scanner()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export all rows to another library."""
        return self.scanner().__arrow_c_stream__(requested_schema)

    @takes(scanner)
    def to_table(self, **kwargs: Any) -> pa.Table:
        """Read into memory.

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
        return self.scanner(**kwargs).to_table()

    @describes_as(scanner)
    def to_pandas(
        self,
        columns: arguments.Columns = None,
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
        blob_mode: arguments.BlobModeName = "lazy",
        use_scalar_index: bool | None = None,
        include_deleted_rows: bool | None = None,
        order_by: list[ColumnOrdering | str] | None = None,
        disable_scoring_autoprojection: bool | None = None,
        **kwargs: Unpack[arguments.PandasOptions],
    ) -> Any:
        """Read into a pandas data frame.

        Args:
            blob_mode: Blobs become files (`lazy`), bytes (`bytes`) or descriptors (`descriptions`).
            **kwargs: Arguments of `pyarrow.Table.to_pandas`; `scanner` describes the others.

        Raises:
            ColumnNotFoundError: The table has no such column.
            InvalidExpressionError: The filter or an expression cannot be parsed or bound.

        Examples:
            >>> float(ds.to_pandas(columns=["score"])["score"].mean())
            2.5
        """
        scanned = given({**locals(), "kwargs": {}}, without=("blob_mode",))
        return self.scanner(**scanned).to_pandas(blob_mode=blob_mode, **kwargs)

    @takes(scanner)
    def to_batches(self, **kwargs: Any) -> Iterator[pa.RecordBatch]:
        """Read batch by batch.

        Returns:
            The batches; memory does not grow with the number of rows.

        Raises:
            ColumnNotFoundError: The table has no such column.
            InvalidExpressionError: The filter or an expression cannot be parsed or bound.

        Examples:
            >>> [batch.num_rows for batch in ds.to_batches(batch_size=2)]
            [2, 1]
        """
        return self.scanner(**kwargs).to_batches()

    def head(self, num_rows: int, **kwargs: Unpack[arguments.HeadOptions]) -> pa.Table:
        """Return the first rows.

        Args:
            num_rows: Rows to return, at most.
            **kwargs: Further arguments of `scanner`.

        Examples:
            >>> ds.head(2, columns=["id"]).to_pydict()
            {'id': [1, 2]}
        """
        return self.scanner(limit=num_rows, **kwargs).to_table()

    def sample(
        self,
        num_rows: int,
        columns: arguments.Columns = None,
        randomize_order: bool = True,
        **kwargs: Unpack[arguments.NoOptions],
    ) -> pa.Table:
        """Return a random sample of rows, without repetition.

        Args:
            num_rows: Rows to return.
            columns: Names, or SQL expressions by name; by default all columns.
            randomize_order: Return the rows in random order instead of table order.
            **kwargs: None are accepted.

        Raises:
            InvalidRequestError: The table has fewer rows.

        Examples:
            >>> ds.sample(2, columns=["id"]).num_rows
            2
        """
        total = self.count_rows()
        if num_rows > total or num_rows < 0:
            raise InvalidRequestError(
                "Sample larger than population or is negative",
                table=self._snapshot.location.uri,
            )
        rows = self._snapshot.location.session.ids.sample(total, num_rows)
        dataset: Any = self
        return dataset.take(rows if randomize_order else sorted(rows), columns, **kwargs)

    @arguments.os_errors()
    def count_rows(
        self, filter: arguments.Filter = None, **kwargs: Unpack[arguments.CountOptions]
    ) -> int:
        """Count the rows, or those that match a filter.

        Args:
            filter: SQL, or an expression of `pyarrow.compute`; without one the manifest has the
                answer.
            **kwargs: Further arguments of `scanner`.

        Raises:
            InvalidExpressionError: The filter cannot be parsed or bound.

        Examples:
            >>> ds.count_rows(), ds.count_rows("name LIKE 'b%'")
            (3, 1)
        """
        if filter is None and not kwargs:
            return self._table.count_rows()
        count = None
        if filter is not None and not kwargs and not self._default_scan_options:
            count = self._table.count_by_index(filter)
        if count is None:
            return self.scanner(filter=filter, columns=[], **kwargs).count_rows()
        return count
