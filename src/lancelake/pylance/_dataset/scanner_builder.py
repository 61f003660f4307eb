"""Builder of scanners, and what a search may ask."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, TypeAlias
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.core.values import reads
from lancelake.errors import InvalidRequestError, UnsupportedError, suggestion
from lancelake.pylance._dataset import arguments
from lancelake.pylance._dataset.scanner import DEFAULTS, LanceScanner, StatisticsCallback
from lancelake.pylance._values import opened
from lancelake.pylance.query import FullTextQuery, text_query

_APPROX_MODES = ("fast", "normal", "accurate")
_MATRIX = 2
_ALL_CPUS = -1


def nearest_request(column: str, q: Any, **options: Any) -> reads.Nearest:
    """Return the search that the arguments of `ScannerBuilder.nearest` ask for."""
    queries, has_several = query_vectors(q)
    nprobes, effort = options["nprobes"], options["search_effort"]
    if nprobes is not None and effort is None and operator.index(nprobes) <= 0:
        raise InvalidRequestError(f"Nprobes must be > 0 but got {nprobes}")
    if options["approx_mode"] not in _APPROX_MODES:
        expected = ", ".join(_APPROX_MODES)
        raise InvalidRequestError(f"approx_mode must be one of: {expected}")
    threads = options["query_parallelism"]
    if threads is not None and operator.index(threads) < _ALL_CPUS:
        raise InvalidRequestError(f"query_parallelism must be -1 or more, got {threads}")
    if effort is not None and not 0 <= float(effort) <= 1:
        raise InvalidRequestError(f"search_effort must be between 0 and 1, got {effort}")
    low, high = options["minimum_nprobes"], options["maximum_nprobes"]
    if nprobes is not None and effort is None:
        low = nprobes if low is None else low
        high = nprobes if high is None else high
    k, metric = options["k"], options["metric"]
    return reads.Nearest(
        column=column,
        queries=queries,
        has_several=has_several,
        k=reads.DEFAULT_K if k is None else operator.index(k),
        metric=None if metric is None else reads.metric_named(metric),
        minimum_nprobes=_count(low),
        maximum_nprobes=_count(high),
        refine_factor=_count(options["refine_factor"]),
        use_index=bool(options["use_index"]),
        ef=_count(options["ef"]),
        within=_range(options["distance_range"]),
        effort=None if effort is None else float(effort),
    )


def query_vectors(query: Any) -> tuple[npt.NDArray[np.float32], bool]:
    """Return query vectors, one per row, and whether several were given."""
    if isinstance(query, np.ndarray) and query.ndim == _MATRIX:
        return _floats(query), True
    if _is_list_of_vectors(query):
        sizes = {len(each) for each in query}
        if len(sizes) > 1:
            shown = " and ".join(map(str, sorted(sizes)))
            problem = f"All query vectors must have the same length, but got {shown}"
            raise InvalidRequestError(problem)
        return np.concatenate([query_vectors(each)[0] for each in query]), True
    if isinstance(query, pa.ExtensionScalar):
        query = query.value
    if isinstance(query, pa.Scalar) and pa.types.is_fixed_size_list(query.type):
        query = query.values
    if isinstance(query, pa.Array | pa.ChunkedArray):
        if not (pa.types.is_floating(query.type) or pa.types.is_integer(query.type)):
            dtype = query.type
            raise TypeError(
                f"query vector must be list-like or pa.FloatingPointArray but received {dtype}"
            )
        query = query.to_numpy(zero_copy_only=False)
    return _floats(query).reshape(1, -1), False


def _is_list_of_vectors(query: Any) -> bool:
    if isinstance(query, pa.FixedSizeListArray | pa.ListArray):
        return True
    is_list = isinstance(query, Sequence | np.ndarray) and not isinstance(query, str) and len(query)
    return bool(is_list) and isinstance(query[0], list | tuple | np.ndarray | pa.Array)


def _floats(values: Any) -> npt.NDArray[np.float32]:
    try:
        return np.asarray(values, dtype=np.float64).astype(np.float32)
    except (TypeError, ValueError) as error:
        kind = type(values)
        raise TypeError(
            f"Query vectors should be an array of floats, got {kind} which we cannot coerce to a "
            "float array"
        ) from error


def _count(value: Any) -> int | None:
    return None if value is None else operator.index(value)


def _range(given: tuple[float | None, float | None] | None) -> reads.DistanceRange:
    if given is None:
        return reads.DistanceRange()
    try:
        lower, upper = given
    except (TypeError, ValueError) as error:
        problem = "distance_range must be a tuple of (lower_bound, upper_bound)"
        raise InvalidRequestError(problem) from error
    return reads.DistanceRange(
        None if lower is None else float(lower), None if upper is None else float(upper)
    )


class VectorSearchQuery:
    """A vector search that filters a full text search.

    Examples:
        >>> nearby = VectorSearchQuery("vector", [0.0, 1.0], k=2)
    """

    def __init__(
        self,
        column: str,
        q: Any,
        k: int | None = None,
        metric: str | None = None,
        nprobes: int | None = None,
        minimum_nprobes: int | None = None,
        maximum_nprobes: int | None = None,
        refine_factor: int | None = None,
        use_index: bool = True,
        ef: int | None = None,
        query_parallelism: int | None = None,
        approx_mode: str = "normal",
        search_effort: float | None = None,
    ) -> None:
        options = {k: v for k, v in locals().items() if k not in ("self", "column", "q")}
        self._nearest = nearest_request(column, q, **options, distance_range=None)

    def __repr__(self) -> str:
        return opened.call_text(self, **opened.chosen(self._nearest))

    def inner(self) -> reads.Nearest:
        """Return the search."""
        return self._nearest


SearchFilter: TypeAlias = arguments.Filter | FullTextQuery | VectorSearchQuery | Mapping[str, Any]
"""Filter of a search: a condition, or another search."""


class VectorSearchOptions:
    """Methods of a scan builder that search for vectors."""

    _has_k = True

    def _with(self, **changes: Any) -> Self:
        raise NotImplementedError

    def nearest(
        self,
        column: str,
        q: Any,
        k: int | None = None,
        metric: str | None = None,
        nprobes: int | None = None,
        minimum_nprobes: int | None = None,
        maximum_nprobes: int | None = None,
        refine_factor: int | None = None,
        use_index: bool = True,
        ef: int | None = None,
        query_parallelism: int | None = None,
        approx_mode: str = "normal",
        distance_range: tuple[float | None, float | None] | None = None,
        search_effort: float | None = None,
    ) -> Self:
        """Find the `k` rows whose vectors are nearest to `q`.

        Without `k`, the limit of the scan is `k`, or 10. Several queries at once return up to `k`
        rows each, with the column `query_index`; of a multivector column they are one query.
        `nprobes` is the number of partitions of an index that are searched. `query_parallelism`
        and `approx_mode` tune official Lance.
        """
        options = {k: v for k, v in locals().items() if k not in ("self", "column", "q")}
        self._has_k = k is not None
        return self._with(nearest=nearest_request(column, q, **options))

    def _with_k(self, request: reads.SearchRequest) -> reads.SearchRequest:
        """Return a request whose limit is the number of neighbours, if that was not given."""
        if request.nearest is None or request.limit is None or self._has_k:
            return request
        k = max(1, request.limit + (request.offset or 0))
        return replace(request, nearest=replace(request.nearest, k=k))


_BATCH_SIZE_VARIABLE = "LANCE_DEFAULT_BATCH_SIZE"


class ScannerBuilder(VectorSearchOptions):
    """Builds a scan from options."""

    def __init__(self, ds: opened.OpenedDataset) -> None:
        self.ds = ds
        rows = _default_batch_size()
        self._request = DEFAULTS if rows is None else replace(DEFAULTS, batch_size=rows)
        self._batch_bytes: int | None = None
        self._mask: reads.AllowedRows | None = None
        self._names_fragments = False
        self._on_statistics: StatisticsCallback | None = None

    def __repr__(self) -> str:
        return opened.call_text(self, self.ds, **opened.chosen(self._request, DEFAULTS))

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

    def columns(self, cols: arguments.Columns = None) -> ScannerBuilder:
        """Column names, or names with SQL expressions; None for all columns."""
        return self._with(columns=arguments.request_columns(cols))

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
        return self._with(blob_values=arguments.asks_for_blob_values(blob_handling))

    def use_stats(self, use_stats: bool = True) -> ScannerBuilder:
        """Accepted and ignored; only legacy files have statistics."""
        return self

    def use_scalar_index(self, use_scalar_index: bool = True) -> ScannerBuilder:
        """Let indices find the rows that match the filter, or not."""
        return self._with(use_scalar_index=use_scalar_index)

    def with_fragments(self, fragments: Iterable[opened.OpenedFragment] | None) -> ScannerBuilder:
        """Scan only these fragments."""
        if fragments is None:
            return self._with(fragment_ids=None)
        ids = tuple(getattr(f, "fragment_id", None) for f in fragments)
        self._names_fragments = True
        if None in ids:
            raise TypeError("fragments must be an iterable of LanceFragment")
        return self._with(fragment_ids=ids)

    def row_addr_prefilter(
        self, allowlist: bytes | None = None, blocklist: bytes | None = None
    ) -> ScannerBuilder:
        """Scan only the rows of `allowlist`, without those of `blocklist`.

        Both are results of `serialize_row_addrs`; without them, all rows are scanned.
        """
        self._mask = reads.AllowedRows.of(allowlist, blocklist)
        return self

    def with_index_segments(self, index_segments: Iterable[str | UUID]) -> ScannerBuilder:
        """Not supported: searches of single index segments; unknown ones are an error."""
        uuids = {str(entry.uuid) for entry in self.ds._snapshot.indices}
        missing = sorted({str(each) for each in index_segments} - uuids)
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
        return self._with(text=text_query(query, columns))

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

    def order_by(self, orderings: list[opened.ColumnOrdering | str] | None) -> ScannerBuilder:
        """Sort the rows."""
        return self._with(order_by=tuple(_ordering(o) for o in orderings or ()))

    def disable_scoring_autoprojection(self, disable: bool = True) -> ScannerBuilder:
        """Return the score of a search only if it is among the columns, or all are returned."""
        return self._with(hides_scores=disable)

    def to_scanner(self) -> LanceScanner:
        """Return the scan, validated against the table."""
        request = self._with_k(self._request)
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


def _ordering(ordering: opened.ColumnOrdering | str) -> reads.Ordering:
    if isinstance(ordering, str):
        return reads.Ordering(column=ordering)
    return reads.Ordering(
        column=ordering.column_name,
        ascending=ordering.ascending,
        nulls_first=ordering.nulls_first,
    )
