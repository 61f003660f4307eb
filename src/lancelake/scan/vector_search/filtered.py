"""Rows that match the filter of a vector search."""

from __future__ import annotations

from collections.abc import Sequence

from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.expr.predicate import Filter
from lancelake.format.ids import FragmentId
from lancelake.scan.execute import kept_offsets
from lancelake.scan.plan import ScanPlan
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.row_mask import AllowedRows, masked_plan
from lancelake.scan.vector_search.target import VectorTarget

_FEW_ROWS = 2048


def vector_scan(
    snapshot: Snapshot,
    target: VectorTarget,
    fragments: Sequence[FragmentId],
    filter: Filter | None,
    *,
    use_scalar_index: bool = True,
    mask: AllowedRows | None = None,
) -> ScanPlan:
    """Plan a scan of the vectors of rows that match, with their addresses."""
    request = ScanRequest(
        columns=(target.path,),
        filter=filter,
        with_row_address=True,
        use_scalar_index=use_scalar_index,
        fragment_ids=tuple(fragments),
    )
    return plan(snapshot, request) if mask is None else masked_plan(snapshot, request, mask)


def many_rows(scan: ScanPlan, k: int) -> dict[int, BitMap] | None:
    """Return the rows of a scan by fragment; None if they are few.

    The nearest of few rows are found faster, and exactly, by reading them than by an index.
    """
    rows = {int(task.fragment.id): kept_offsets(task) for task in scan.tasks}
    return None if sum(map(len, rows.values())) <= max(_FEW_ROWS, k) else rows
