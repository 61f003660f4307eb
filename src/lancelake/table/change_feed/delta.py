"""Which rows were made, changed or gone between two versions, by the lineage they carry?"""

from __future__ import annotations

import pyarrow as pa

from lancelake.data.row_meta import MetaColumn
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.stream import run
from lancelake.table.change_feed.execute import execute
from lancelake.table.change_feed.planner import plan_changes
from lancelake.table.change_feed.request import ROW_ID, ChangeKind, ChangeRequest
from lancelake.table.change_feed.versions import ensure_row_ids
from lancelake.table.open import AtVersion
from lancelake.table.snapshot import Snapshot

_CREATED, _UPDATED = MetaColumn.CREATED_AT.value, MetaColumn.LAST_UPDATED_AT.value


def inserted_rows(snapshot: Snapshot, begin: int, end: int) -> pa.RecordBatchReader:
    """Stream the rows of a version that were made after `begin`, up to and with `end`."""
    return _scanned(snapshot, f"{_CREATED} > {begin} AND {_CREATED} <= {end}")


def updated_rows(snapshot: Snapshot, begin: int, end: int) -> pa.RecordBatchReader:
    """Stream the rows of a version that were there at `begin` and last changed up to `end`."""
    changed = f"{_UPDATED} > {begin} AND {_UPDATED} <= {end}"
    return _scanned(snapshot, f"{_CREATED} <= {begin} AND {changed}")


def deleted_row_ids(snapshot: Snapshot, begin: int, end: int) -> pa.RecordBatchReader:
    """Stream the ids of rows that version `begin` has and version `end` has not."""
    request = ChangeRequest(columns=(), kinds=frozenset({ChangeKind.DELETE}), is_net=True)
    planned = plan_changes(snapshot, AtVersion(begin), AtVersion(end), request)
    batches = (batch.select([ROW_ID]) for task in planned.tasks for batch in execute(task))
    schema = pa.schema([planned.schema.field(ROW_ID)])
    return pa.RecordBatchReader.from_batches(schema, batches)


def _scanned(snapshot: Snapshot, condition: str) -> pa.RecordBatchReader:
    ensure_row_ids(snapshot)
    columns = (*snapshot.manifest.schema.names, ROW_ID, _CREATED, _UPDATED)
    return run(plan(snapshot.source, ScanRequest(columns=columns, filter=condition)))
