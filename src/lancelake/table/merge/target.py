"""Read target rows of a merge by address."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.data.row_meta import MetaColumn
from lancelake.format import roaring
from lancelake.format.blobs import has_blobs
from lancelake.format.ids import FragmentId
from lancelake.format.row_address import fragment_of, offset_of
from lancelake.scan.execute import execute
from lancelake.scan.plan import ScanTask
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.scan_columns import ScanColumns
from lancelake.table.merge.match import Addresses
from lancelake.table.row_steps.writable import writable

_ROWS_AT_ONCE = 1 << 16
_BLOBS_AT_ONCE = 1 << 8
_ROW_ID = MetaColumn.ROW_ID.value


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRows:
    """Selected columns of a version, optionally with row ids."""

    scans: dict[FragmentId, ScanTask]
    columns: ScanColumns | None
    batch_rows: int

    @staticmethod
    def of(base: Snapshot, columns: tuple[str, ...], *, with_row_id: bool = False) -> TargetRows:
        """Plan to read these columns."""
        request = ScanRequest(columns=columns, with_row_id=with_row_id)
        tasks = plan(base, request).tasks
        names = frozenset(columns)
        fields = [f for f in base.manifest.schema.fields if f.name in names]
        return TargetRows(
            scans={task.fragment.id: task for task in tasks},
            columns=ScanColumns.of(tasks[0].spec) if tasks else None,
            batch_rows=_BLOBS_AT_ONCE if any(map(has_blobs, fields)) else _ROWS_AT_ONCE,
        )

    def at(self, addresses: Addresses) -> pa.RecordBatch:
        """Return the rows at addresses, which must ascend and may repeat."""
        fragments = fragment_of(addresses).astype(np.int64)
        found = [
            self._of_fragment(FragmentId(int(i)), addresses[fragments == i])
            for i in np.unique(fragments)
        ]
        return found[0] if len(found) == 1 else pa.concat_batches(found)

    def _of_fragment(self, fragment: FragmentId, addresses: Addresses) -> pa.RecordBatch:
        offsets = offset_of(addresses).astype(np.uint32)
        wanted = np.unique(offsets)
        part = replace(self.scans[fragment], start=int(wanted[0]), stop=int(wanted[-1]) + 1)
        part = part.matching(roaring.of(wanted))
        batches = list(writable(part, execute(part, self.columns)))
        rows = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
        if len(wanted) == len(offsets):
            return rows
        return rows.take(pa.array(np.searchsorted(wanted, offsets)))


def row_ids(rows: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array]:
    """Split rows into rows without ids, and the ids."""
    position = rows.schema.get_field_index(_ROW_ID)
    return rows.remove_column(position), rows.column(position)
