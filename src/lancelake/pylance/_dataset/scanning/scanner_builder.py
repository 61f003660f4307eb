"""Builder of scans: one method for each option."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Self
from uuid import UUID

from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.pylance._dataset.arguments.scan_arguments import (
    Columns,
    asks_for_blob_values,
    request_columns,
)
from lancelake.pylance._dataset.scanning.scan_statistics import StatisticsCallback
from lancelake.pylance._dataset.scanning.scanner import LanceScanner
from lancelake.pylance._dataset.scanning.search_options import (
    SearchFilter,
    VectorSearchOptions,
    VectorSearchQuery,
)
from lancelake.pylance._values.opened import OpenedDataset, OpenedFragment
from lancelake.pylance._values.ordering import ColumnOrdering
from lancelake.pylance._values.reprs import call_text, chosen
from lancelake.pylance.query import FullTextQuery, text_query
from lancelake.scan.request import Ordering, ScanRequest
from lancelake.scan.row_mask import AllowedRows
from lancelake.suggest import suggestion

_BATCH_SIZE_VARIABLE = "LANCE_DEFAULT_BATCH_SIZE"


class ScannerBuilder(VectorSearchOptions):
    """Builds a scan from options."""

    def __init__(self, ds: OpenedDataset) -> None:
        self.ds = ds
        self._request = ScanRequest(batch_size=_default_batch_size())
        self._batch_bytes: int | None = None
        self._mask: AllowedRows | None = None
        self._names_fragments = False
        self._on_statistics: StatisticsCallback | None = None

    def __repr__(self) -> str:
        return call_text(self, self.ds, **chosen(self._request))

    def _with(self, **changes: Any) -> Self:
        self._request = replace(self._request, **changes)
        return self

    def apply_defaults(self, default_opts: Mapping[str, Any]) -> ScannerBuilder:
        """Call the method of each name with its value."""
        for name, value in default_opts.items():
            if name not in SCAN_OPTIONS:
                advice = suggestion(name, SCAN_OPTIONS, "scan options")
                raise InvalidRequestError(
                    f"Unknown scan option: {name}", option=name, action=advice
                )
            if name == "nearest":
                self.nearest(**value)
            else:
                getattr(self, name)(value)
        return self

    def batch_size(self, batch_size: int) -> ScannerBuilder:
        """Rows per batch, at most."""
        return self._with(batch_size=batch_size)

    def batch_size_bytes(self, batch_size_bytes: int) -> ScannerBuilder:
        """Bytes per batch, at most, unless a single row is larger."""
        if operator.index(batch_size_bytes) <= 0:
            problem = f"batch_size_bytes must be greater than 0, got {batch_size_bytes}"
            raise InvalidRequestError(problem, batch_size_bytes=batch_size_bytes)
        self._batch_bytes = batch_size_bytes
        return self

    def batch_readahead(self, nbatches: int | None = None) -> ScannerBuilder:
        """Batches to read ahead within a fragment."""
        if nbatches is not None and int(nbatches) < 0:
            raise InvalidRequestError("batch_readahead must be non-negative")
        return self._with(batch_readahead=nbatches)

    def fragment_readahead(self, nfragments: int | None = None) -> ScannerBuilder:
        """Fragments to read ahead."""
        if nfragments is not None and int(nfragments) < 0:
            raise InvalidRequestError("fragment_readahead must be non-negative")
        return self._with(fragment_readahead=nfragments)

    def io_buffer_size(self, io_buffer_size: int) -> ScannerBuilder:
        """Accepted and ignored; memory is bounded by row width."""
        return self

    def scan_in_order(self, scan_in_order: bool = True) -> ScannerBuilder:
        """Accepted and ignored; batches are always in order."""
        return self

    def limit(self, n: int | None = None) -> ScannerBuilder:
        """Rows to return, at most."""
        return self._with(limit=None if n is None else operator.index(n))

    def offset(self, n: int | None = None) -> ScannerBuilder:
        """Rows to skip."""
        return self._with(offset=None if n is None else operator.index(n))

    def columns(self, cols: Columns = None) -> ScannerBuilder:
        """Column names, or names with SQL expressions; None for all columns."""
        return self._with(columns=request_columns(cols))

    def filter(self, filter: SearchFilter) -> ScannerBuilder:
        """Keep only the rows that match a condition or that another search finds.

        A full text query filters a vector search, a `VectorSearchQuery` a full text search; the
        keys `expr_filter` and `search_filter` of a mapping give both.
        """
        match filter:
            case FullTextQuery():
                return self._with(search_filter=text_query(filter))
            case VectorSearchQuery():
                return self._with(search_filter=filter.inner())
            case Mapping():
                for part in (filter.get("expr_filter"), filter.get("search_filter")):
                    if part is not None:
                        self.filter(part)
                return self
            case _:
                return self._with(filter=filter)

    def prefilter(self, prefilter: bool) -> ScannerBuilder:
        """Search only rows that match the filter, instead of filtering what a search returns."""
        return self._with(prefilter=bool(prefilter))

    def with_row_id(self, with_row_id: bool = True) -> ScannerBuilder:
        """Add the column `_rowid`."""
        return self._with(with_row_id=with_row_id)

    def with_row_address(self, with_row_address: bool = True) -> ScannerBuilder:
        """Add the column `_rowaddr`."""
        return self._with(with_row_address=with_row_address)

    def late_materialization(self, late_materialization: bool | list[str]) -> ScannerBuilder:
        """Read these columns, all (True) or none (False) after the filter."""
        late = late_materialization
        if isinstance(late, bool):
            return self._with(late_materialization=late)
        if isinstance(late, list) and all(isinstance(name, str) for name in late):
            return self._with(late_materialization=tuple(late))
        raise InvalidRequestError("late_materialization must be a bool or a list of strings")

    def blob_handling(self, blob_handling: str | None) -> ScannerBuilder:
        """Return blobs as bytes (`all_binary`), or as descriptors (any other value)."""
        return self._with(blob_values=asks_for_blob_values(blob_handling))

    def use_stats(self, use_stats: bool = True) -> ScannerBuilder:
        """Accepted and ignored; only legacy files have statistics."""
        return self

    def use_scalar_index(self, use_scalar_index: bool = True) -> ScannerBuilder:
        """Let indices find the rows that match the filter, or not."""
        return self._with(use_scalar_index=use_scalar_index)

    def with_fragments(self, fragments: Iterable[OpenedFragment] | None) -> ScannerBuilder:
        """Scan only these fragments."""
        if fragments is None:
            return self._with(fragment_ids=None)
        chosen = tuple(getattr(f, "fragment_id", None) for f in fragments)
        self._names_fragments = True
        if None in chosen:
            raise TypeError("fragments must be an iterable of LanceFragment")
        return self._with(fragment_ids=chosen)

    def row_addr_prefilter(
        self, allowlist: bytes | None = None, blocklist: bytes | None = None
    ) -> ScannerBuilder:
        """Scan only the rows of `allowlist`, without those of `blocklist`.

        Both are results of `serialize_row_addrs`; without them, all rows are scanned.
        """
        self._mask = AllowedRows.of(allowlist, blocklist)
        return self

    def with_index_segments(self, index_segments: Iterable[str | UUID]) -> ScannerBuilder:
        """Not supported: searches of single index segments; unknown ones are an error."""
        known = {str(entry.uuid) for entry in self.ds._snapshot.indices}
        missing = sorted({str(each) for each in index_segments} - known)
        if missing:
            shown = ", ".join(missing)
            problem = f"with_index_segments referenced unknown index segments: {shown}"
            raise InvalidRequestError(problem)
        raise UnsupportedError("searching single index segments is not supported")

    def substrait_aggregate(self, aggregate: bytes) -> ScannerBuilder:
        """Not supported: aggregates encoded as Substrait."""
        raise UnsupportedError(
            "Substrait aggregates are not supported", action="Use LanceDataset.sql()."
        )

    def minhash_search(self, query: Any) -> ScannerBuilder:
        """Not supported: MinHash search."""
        raise UnsupportedError("MinHash search is not supported")

    def full_text_search(
        self,
        query: str | FullTextQuery | Mapping[str, Any],
        columns: list[str] | None = None,
    ) -> ScannerBuilder:
        """Return only rows that match a full text query, best first, with their `_score`.

        A text is searched in `columns`, or in all columns with a text index; in quotation marks
        it is a phrase.
        """
        return self._with(text_query=text_query(query, columns))

    def fast_search(self, flag: bool) -> ScannerBuilder:
        """Skip fragments that the searched indices do not cover."""
        return self._with(fast_search=flag)

    def include_deleted_rows(self, flag: bool) -> ScannerBuilder:
        """Include deleted rows, with a null row id."""
        return self._with(include_deleted_rows=flag)

    def scan_stats_callback(self, callback: StatisticsCallback) -> ScannerBuilder:
        """Call a function with the statistics of the scan after its last row.

        Errors of the function are logged.
        """
        self._on_statistics = callback
        return self

    def strict_batch_size(self, strict_batch_size: bool = False) -> ScannerBuilder:
        """Return batches of exactly the requested size, except the last."""
        return self._with(strict_batch_size=strict_batch_size)

    def order_by(self, orderings: list[ColumnOrdering | str] | None) -> ScannerBuilder:
        """Sort the rows."""
        return self._with(order_by=tuple(_ordering(o) for o in orderings or ()))

    def disable_scoring_autoprojection(self, disable: bool = True) -> ScannerBuilder:
        """Return the score of a search only if it is among the columns, or all are returned."""
        return self._with(hides_scores=disable)

    def to_scanner(self) -> LanceScanner:
        """Return the scan, validated against the table."""
        request = self._limited(self._request)
        if request.nearest is not None and self._names_fragments and not request.prefilter:
            raise InvalidRequestError(
                "This operation is not supported for fragment scan", action="Use prefilter=True."
            )
        if request.include_deleted_rows and not request.with_row_id:
            problem = "include_deleted_rows needs row ids, but with_row_id is false"
            raise InvalidRequestError(problem)
        return LanceScanner(
            self.ds._snapshot,
            request,
            batch_bytes=self._batch_bytes,
            mask=self._mask,
            on_statistics=self._on_statistics,
        )


SCAN_OPTIONS = frozenset(
    name
    for name in dir(ScannerBuilder)
    if not name.startswith("_") and name not in ("apply_defaults", "to_scanner")
)
"""Options of a scan: the methods of the builder."""


def _default_batch_size() -> int | None:
    """Return the rows per batch set in the environment."""
    text = os.environ.get(_BATCH_SIZE_VARIABLE)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        problem = f"the environment variable {_BATCH_SIZE_VARIABLE} must be a positive integer"
        raise InvalidRequestError(problem, value=text)
    return int(text)


def _ordering(ordering: ColumnOrdering | str) -> Ordering:
    if isinstance(ordering, str):
        return Ordering(column=ordering)
    return Ordering(
        column=ordering.column_name,
        ascending=ordering.ascending,
        nulls_first=ordering.nulls_first,
    )
