"""Search filter: a text search restricts a vector search, or the other way round."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError
from lancelake.index.text.query import Phrase
from lancelake.scan.measure import ScanMeasure
from lancelake.scan.nearest import Nearest
from lancelake.scan.ranked_search import RankedRowsFinder, RankedSearch
from lancelake.scan.request import ScanRequest
from lancelake.scan.row_mask import AllowedRows
from lancelake.scan.scored_rows import SearchedRows
from lancelake.scan.text_search.plan import plan_text_search
from lancelake.scan.vector_search.plan import plan_vector_search


def plan_filtered_search(
    snapshot: Snapshot, request: ScanRequest, mask: AllowedRows | None
) -> RankedSearch:
    """Plan a search whose rows a second search of another kind must find too.

    With `prefilter` the search considers only what the filter finds. Otherwise the filter searches
    the result of the search.
    """
    _ensure_possible(request)
    main = replace(request, search_filter=None)
    planned = _planned(snapshot, main, mask)
    rows = _FilteredRows(
        snapshot=snapshot, main=main, finder=planned.finder, second=_second(request), mask=mask
    )
    return replace(planned, finder=rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class _FilteredRows:
    """The rows of a search that another one finds too, by the rank of the first."""

    snapshot: Snapshot
    main: ScanRequest
    finder: RankedRowsFinder
    second: ScanRequest
    mask: AllowedRows | None

    @property
    def num_fragments(self) -> int:
        """Number of fragments that are scanned."""
        return self.finder.num_fragments

    def found(self) -> SearchedRows:
        """Search twice, and return the rows by rank."""
        if self.main.prefilter:
            allowed = _planned(self.snapshot, self.second, self.mask).finder.found()
            within = AllowedRows.at(allowed.addresses)
            return _planned(self.snapshot, self.main, within).finder.found()
        if isinstance(self.second.text_query, Phrase):
            problem = "a phrase cannot filter the result of a search"
            raise InvalidRequestError(problem, action="Use prefilter=True.")
        found = self.finder.found()
        within = AllowedRows.at(found.addresses)
        kept = _planned(self.snapshot, self.second, within).finder.found().addresses
        return found.only(np.flatnonzero(np.isin(found.addresses, kept)))

    def steps(self, *, verbose: bool, measure: ScanMeasure | None) -> list[str]:
        """Describe both searches, the one that runs last first."""
        second = _planned(self.snapshot, self.second, self.mask).finder
        steps = [
            self.finder.steps(verbose=verbose, measure=measure),
            second.steps(verbose=verbose, measure=None),
        ]
        return [line for part in steps[:: 1 if self.main.prefilter else -1] for line in part]


def _planned(snapshot: Snapshot, request: ScanRequest, mask: AllowedRows | None) -> RankedSearch:
    plan = plan_vector_search if request.nearest is not None else plan_text_search
    return plan(snapshot, request, mask)


def _second(request: ScanRequest) -> ScanRequest:
    """Return the request of the second search, for all rows that it finds."""
    asked = request.search_filter
    is_vector = isinstance(asked, Nearest)
    return ScanRequest(
        columns=(),
        nearest=asked if isinstance(asked, Nearest) else None,
        text_query=None if is_vector or isinstance(asked, Nearest) else asked,
        filter=request.filter if request.prefilter else None,
        prefilter=True,
        fragment_ids=request.fragment_ids,
        fast_search=request.fast_search,
        use_scalar_index=request.use_scalar_index,
    )


def _ensure_possible(request: ScanRequest) -> None:
    """Raise unless the two searches are of different kinds."""
    is_vector = isinstance(request.search_filter, Nearest)
    if request.nearest is None and request.text_query is None:
        raise InvalidRequestError(
            "Query filter can only be used with full text search or vector search"
        )
    if is_vector and request.nearest is not None:
        raise InvalidRequestError("Query filter can't be used with vector search")
    if not is_vector and request.text_query is not None:
        raise InvalidRequestError("Fts filter can't be used with fts search")
