"""Prepared scan: planned, and ready to run."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError
from lancelake.index.text.text_query import Phrase
from lancelake.scan.explain import ScanMeasure, explain
from lancelake.scan.plan import ScanPlan
from lancelake.scan.planner import plan
from lancelake.scan.request import Nearest, ScanRequest, SearchRequest
from lancelake.scan.row_lookup import AllowedRows, plan_masked
from lancelake.scan.search.ranked import RankedRowsFinder, RankedSearch, SearchedRows
from lancelake.scan.search.text import plan_text_search
from lancelake.scan.search.vector_search import plan_vector_search
from lancelake.scan.stream import count, run


def plan_filtered_search(
    snapshot: Snapshot, request: SearchRequest, mask: AllowedRows | None
) -> RankedSearch:
    """Plan a search whose rows a second search of another kind must find too.

    With `prefilter` the search considers only what the filter finds. Otherwise the filter searches
    the result of the search.
    """
    _ensure_possible(request)
    main = replace(request, search_filter=None)
    planned = _plan(snapshot, main, mask)
    rows = _FilteredRows(
        snapshot=snapshot, main=main, finder=planned.finder, second=_second(request), mask=mask
    )
    return replace(planned, finder=rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class _FilteredRows:
    """The rows of a search that another one finds too, by the rank of the first."""

    snapshot: Snapshot
    main: SearchRequest
    finder: RankedRowsFinder
    second: SearchRequest
    mask: AllowedRows | None

    @property
    def num_fragments(self) -> int:
        """Number of fragments that are scanned."""
        return self.finder.num_fragments

    def search(self) -> SearchedRows:
        """Search twice, and return the rows by rank."""
        if self.main.prefilter:
            allowed = _plan(self.snapshot, self.second, self.mask).finder.search()
            within = AllowedRows.at(allowed.addresses)
            return _plan(self.snapshot, self.main, within).finder.search()
        if isinstance(self.second.text, Phrase):
            problem = "a phrase cannot filter the result of a search"
            raise InvalidRequestError(problem, action="Use prefilter=True.")
        rows = self.finder.search()
        within = AllowedRows.at(rows.addresses)
        both = _plan(self.snapshot, self.second, within).finder.search().addresses
        return rows.only(np.flatnonzero(np.isin(rows.addresses, both)))

    def steps(self, *, verbose: bool, measure: ScanMeasure | None) -> list[str]:
        """Describe both searches, the one that runs last first."""
        second = _plan(self.snapshot, self.second, self.mask).finder
        steps = [
            self.finder.steps(verbose=verbose, measure=measure),
            second.steps(verbose=verbose, measure=None),
        ]
        return [line for part in steps[:: 1 if self.main.prefilter else -1] for line in part]


def _plan(snapshot: Snapshot, request: SearchRequest, mask: AllowedRows | None) -> RankedSearch:
    plan = plan_vector_search if request.nearest is not None else plan_text_search
    return plan(snapshot, request, mask)


def _second(request: SearchRequest) -> SearchRequest:
    """Return the request of the second search, for all rows that it finds."""
    query = request.search_filter
    return SearchRequest(
        columns=(),
        nearest=query if isinstance(query, Nearest) else None,
        text=None if isinstance(query, Nearest) else query,
        filter=request.filter if request.prefilter else None,
        fragment_ids=request.fragment_ids,
        fast_search=request.fast_search,
        use_scalar_index=request.use_scalar_index,
    )


def _ensure_possible(request: SearchRequest) -> None:
    """Raise unless the two searches are of different kinds."""
    is_vector = isinstance(request.search_filter, Nearest)
    if request.nearest is None and request.text is None:
        raise InvalidRequestError(
            "Query filter can only be used with full text search or vector search"
        )
    if is_vector and request.nearest is not None:
        raise InvalidRequestError("Query filter can't be used with vector search")
    if not is_vector and request.text is not None:
        raise InvalidRequestError("Fts filter can't be used with fts search")


@dataclass(frozen=True, slots=True)
class PlainScan:
    """A scan of rows in their order, or in that of a column."""

    plan: ScanPlan

    @property
    def schema(self) -> pa.Schema:
        """Schema of the result."""
        return self.plan.schema

    @property
    def num_fragments(self) -> int:
        """Number of fragments to scan."""
        return len(self.plan.tasks)

    def run(self, measure: ScanMeasure | None = None) -> pa.RecordBatchReader:
        """Stream the rows, counted if asked."""
        return run(self.plan, measure)

    def count(self) -> int:
        """Count the rows."""
        return count(self.plan)

    def explain(self, *, verbose: bool = False, measure: ScanMeasure | None = None) -> str:
        """Describe the steps, with the counts of a run, if given."""
        return explain(self.plan, verbose=verbose, measure=measure)


PreparedScan = PlainScan | RankedSearch
"""Rows of a version that are read when it is run."""


def prepare(
    snapshot: Snapshot, request: ScanRequest, mask: AllowedRows | None = None
) -> PreparedScan:
    """Plan what a request asks for, on the rows of a mask."""
    if isinstance(request, SearchRequest):
        if request.search_filter is not None:
            return plan_filtered_search(snapshot, request, mask)
        if request.nearest is not None:
            return plan_vector_search(snapshot, request, mask)
        if request.text is not None:
            return plan_text_search(snapshot, request, mask)
    if mask is not None:
        return PlainScan(plan_masked(snapshot, request, mask))
    return PlainScan(plan(snapshot, request))
