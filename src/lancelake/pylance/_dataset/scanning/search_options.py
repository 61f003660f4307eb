"""Scan options that search for rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self, TypeAlias

from lancelake.pylance._dataset.arguments.scan_arguments import Filter
from lancelake.pylance._dataset.scanning.nearest import nearest_request
from lancelake.pylance._values.reprs import call_text, chosen
from lancelake.pylance.query import FullTextQuery
from lancelake.scan.nearest import Nearest
from lancelake.scan.request import ScanRequest


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
        return call_text(self, **chosen(self._nearest))

    def inner(self) -> Nearest:
        """Return the search."""
        return self._nearest


SearchFilter: TypeAlias = Filter | FullTextQuery | VectorSearchQuery | Mapping[str, Any]
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

    def _limited(self, request: ScanRequest) -> ScanRequest:
        """Return a request whose limit is the number of neighbours, if that was not given."""
        if request.nearest is None or request.limit is None or self._has_k:
            return request
        k = max(1, request.limit + (request.offset or 0))
        return replace(request, nearest=replace(request.nearest, k=k))
