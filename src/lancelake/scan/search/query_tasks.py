"""Search of some queries of a batch, on some fragments or on all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.expr.predicate import Filter
from lancelake.format.ids import FragmentId
from lancelake.scan.nearest import DISTANCE, QUERY_INDEX, Nearest
from lancelake.scan.prepared import prepare
from lancelake.scan.request import ScanRequest
from lancelake.scan.search.found_rows import ADDRESS, FOUND, NO_SEGMENT


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSearch:
    """The nearest rows of each of several query vectors, searched independently."""

    snapshot: Snapshot
    nearest: Nearest
    filter: Filter | None = None
    prefilter: bool = True
    fast_search: bool = False

    @property
    def before_filter(self) -> BatchSearch:
        """The search without a filter that is applied to its result."""
        return self if self.prefilter else replace(self, filter=None, prefilter=True)

    def request(self, nearest: Nearest) -> ScanRequest:
        """Return the scan request for some of the queries."""
        return ScanRequest(
            columns=(),
            with_row_address=True,
            nearest=replace(nearest, has_several=True),
            filter=self.filter,
            prefilter=self.prefilter,
            fast_search=self.fast_search,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSearchTask:
    """Some of the queries of a batch on some fragments, or on all of them."""

    search: BatchSearch
    first_query: int
    fragment_ids: tuple[FragmentId, ...] | None

    @property
    def is_partial(self) -> bool:
        """Whether other tasks may find nearer rows of the same queries."""
        return self.fragment_ids is not None

    def run(self) -> pa.Table:
        """Return up to `k` rows of each query, with the columns of `FOUND`."""
        request = replace(self.search.request(self.search.nearest), fragment_ids=self.fragment_ids)
        with prepare(self.search.snapshot, request).run() as reader:
            found = reader.read_all()
        places = found.column(QUERY_INDEX).to_numpy().astype(np.int64) + self.first_query
        addresses = found.column(ADDRESS).to_numpy().astype(np.int64)
        none = np.full(len(places), NO_SEGMENT, dtype=np.int32)
        columns = [places, none, addresses, addresses, found.column(DISTANCE)]
        return pa.table(columns, schema=FOUND)
