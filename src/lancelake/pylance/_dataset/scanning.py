"""Dataset methods that scan, as in pylance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from lancelake.clock import Ids, SystemIds
from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError
from lancelake.format import row_address_set
from lancelake.format.row_address import OFFSET_BITS
from lancelake.pylance._dataset.os_errors import names_dataset, os_errors
from lancelake.pylance._dataset.scan_arguments import Columns, Filter
from lancelake.pylance._dataset.scanner import LanceScanner, ScannerBuilder
from lancelake.pylance._values.arguments import given
from lancelake.pylance._values.opened import OpenedFragment
from lancelake.pylance._values.ordering import ColumnOrdering
from lancelake.scan.count import count_rows
from lancelake.scan.stream import count_by_index

_IDS: Ids = SystemIds()
_BUILDER_NAMES = {
    "fragments": "with_fragments",
    "full_text_query": "full_text_search",
    "index_segments": "with_index_segments",
}
"""Arguments of a scan whose method of the builder has another name."""


def serialize_row_addrs(addrs: Iterable[int]) -> bytes:
    """Encode row ids for `row_addr_allowlist` and `row_addr_blocklist` of a scan."""
    parts: dict[int, BitMap] = {}
    for number in addrs:
        parts.setdefault(number >> OFFSET_BITS, BitMap()).add(number & ((1 << OFFSET_BITS) - 1))
    return row_address_set.encode(parts)


class DatasetScans:
    """Methods that scan the open version."""

    _snapshot: Snapshot
    _default_scan_options: dict[str, Any] | None

    @names_dataset
    def scanner(
        self,
        columns: Columns = None,
        filter: Filter = None,
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
        """Return a scan; each argument is a method of `ScannerBuilder`."""
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
        filter: Filter = None,
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
        **kwargs: Any,
    ) -> pa.Table:
        """Read into memory; `kwargs` are further arguments of `scanner`."""
        return self.scanner(**given(locals())).to_table()

    def to_pandas(
        self,
        columns: Columns = None,
        filter: Filter = None,
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
        blob_mode: str = "lazy",
        use_scalar_index: bool | None = None,
        include_deleted_rows: bool | None = None,
        order_by: list[ColumnOrdering | str] | None = None,
        disable_scoring_autoprojection: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Read into a pandas data frame; `kwargs` are those of `pyarrow.Table.to_pandas`.

        Blobs become files (`blob_mode="lazy"`), bytes (`"bytes"`) or descriptors
        (`"descriptions"`).
        """
        scanned = given({**locals(), "kwargs": {}}, without=("blob_mode",))
        return self.scanner(**scanned).to_pandas(blob_mode=blob_mode, **kwargs)

    def to_batches(
        self,
        columns: Columns = None,
        filter: Filter = None,
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
        **kwargs: Any,
    ) -> Iterator[pa.RecordBatch]:
        """Read batch by batch; `kwargs` are further arguments of `scanner`."""
        return self.scanner(**given(locals())).to_batches()

    def head(self, num_rows: int, **kwargs: Any) -> pa.Table:
        """Return the first rows."""
        return self.scanner(limit=num_rows, **kwargs).to_table()

    def sample(
        self,
        num_rows: int,
        columns: Columns = None,
        randomize_order: bool = True,
        **kwargs: Any,
    ) -> pa.Table:
        """Return a random sample of rows."""
        total = self.count_rows()
        if num_rows > total or num_rows < 0:
            raise InvalidRequestError(
                "Sample larger than population or is negative",
                table=self._snapshot.location.uri,
            )
        chosen = _IDS.sample(total, num_rows)
        dataset: Any = self
        return dataset.take(chosen if randomize_order else sorted(chosen), columns, **kwargs)

    @os_errors()
    def count_rows(self, filter: Filter = None, **kwargs: Any) -> int:
        """Count the rows, or those that match a filter."""
        if filter is None and not kwargs:
            return count_rows(self._snapshot)
        found = None
        if filter is not None and not kwargs and not self._default_scan_options:
            found = self._counted_by_index(filter)
        if found is None:
            return self.scanner(filter=filter, columns=[], **kwargs).count_rows()
        return found

    @names_dataset
    def _counted_by_index(self, filter: str | pc.Expression) -> int | None:
        return count_by_index(self._snapshot, filter)
