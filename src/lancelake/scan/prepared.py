"""A scan or a search of one version, ready to run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.scan.explain import explain
from lancelake.scan.measure import ScanMeasure
from lancelake.scan.plan import ScanPlan
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.row_mask import AllowedRows, masked_plan
from lancelake.scan.search_filter import plan_filtered_search
from lancelake.scan.stream import count, run
from lancelake.scan.text_search.plan import plan_text_search
from lancelake.scan.vector_search.plan import plan_vector_search


class PreparedScan(Protocol):
    """Rows of a version that are read when it is run."""

    @property
    def schema(self) -> pa.Schema:
        """Schema of the result."""
        ...

    @property
    def num_fragments(self) -> int:
        """Number of fragments to scan."""
        ...

    def run(self, measure: ScanMeasure | None = None) -> pa.RecordBatchReader:
        """Stream the rows, counted if asked."""
        ...

    def count(self) -> int:
        """Count the rows."""
        ...

    def explain(self, *, verbose: bool = False, measure: ScanMeasure | None = None) -> str:
        """Describe the steps, with the counts of a run, if given."""
        ...


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


def prepare(
    snapshot: Snapshot, request: ScanRequest, mask: AllowedRows | None = None
) -> PreparedScan:
    """Plan what a request asks for, on the rows of a mask."""
    if request.search_filter is not None:
        return plan_filtered_search(snapshot, request, mask)
    if request.nearest is not None:
        return plan_vector_search(snapshot, request, mask)
    if request.text_query is not None:
        return plan_text_search(snapshot, request, mask)
    if mask is not None:
        return PlainScan(masked_plan(snapshot, request, mask))
    return PlainScan(plan(snapshot, request))
