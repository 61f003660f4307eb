"""Restriction of a scan to some rows, given by their ids."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.format import row_address_set
from lancelake.format.ids import MAX_ROWS, FragmentId
from lancelake.format.row_address import ascending, by_fragment
from lancelake.format.rowids.segment import U64Array
from lancelake.scan.plan import ScanPlan, ScanTask
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.row_lookup import MISSING, addresses_of

Parts = dict[FragmentId, BitMap]


@dataclass(frozen=True, slots=True)
class AllowedRows:
    """Rows to read, and rows not to read, by the high and low words of their ids."""

    allowed: Parts | None
    blocked: Parts
    is_addressed: bool = False
    """Whether the rows are given by their addresses, also where they have stable ids."""

    @staticmethod
    def at(addresses: U64Array) -> AllowedRows:
        """Return the mask of the rows at some addresses."""
        return AllowedRows(by_fragment(addresses), {}, is_addressed=True)

    @staticmethod
    def of(allowlist: bytes | None, blocklist: bytes | None) -> AllowedRows | None:
        """Decode serialized sets; None if there is neither."""
        if allowlist is None and blocklist is None:
            return None
        allowed = None if allowlist is None else row_address_set.decode(allowlist)
        return AllowedRows(allowed, {} if blocklist is None else row_address_set.decode(blocklist))

    def at_addresses(self, snapshot: Snapshot) -> AllowedRows:
        """Return the mask by address; only stable row ids differ from addresses."""
        if self.is_addressed or not snapshot.manifest.has_stable_row_ids:
            return self
        allowed = None if self.allowed is None else _addressed(snapshot, self.allowed)
        return AllowedRows(allowed, _addressed(snapshot, self.blocked))

    def applied(self, task: ScanTask) -> ScanTask | None:
        """Return the task for the rows of the mask; None if there are none."""
        number = task.fragment.id
        if self.allowed is None and number not in self.blocked:
            return task
        every = range(task.fragment.physical_rows or MAX_ROWS)
        rows = BitMap(every) if self.allowed is None else self.allowed.get(number, BitMap())
        rows = rows - self.blocked.get(number, BitMap())
        masked = task.within(rows)
        return masked if masked.rows else None


def masked_plan(snapshot: Snapshot, request: ScanRequest, mask: AllowedRows) -> ScanPlan:
    """Plan a scan of the rows of a mask; offset and limit count these rows only."""
    whole = plan(snapshot, replace(request, offset=None, limit=None))
    here = mask.at_addresses(snapshot)
    tasks = (here.applied(task) for task in whole.tasks)
    return replace(
        whole,
        tasks=tuple(task for task in tasks if task is not None),
        skip=request.offset or 0,
        limit=request.limit,
    )


def _addressed(snapshot: Snapshot, parts: Parts) -> Parts:
    found = addresses_of(snapshot, ascending(parts))
    return by_fragment(found[found != MISSING])
