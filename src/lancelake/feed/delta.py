"""Inserted, updated and deleted rows between two versions, from row lineage."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.data.deletion_files import MetaColumn
from lancelake.feed.changed_rows import execute
from lancelake.feed.plan import plan_changes
from lancelake.feed.request import ROW_ID, ChangeKind, ChangeRequest, ensure_row_ids
from lancelake.format import rowids
from lancelake.format.fragment import ExternalFile, Fragment, Sequenced
from lancelake.format.rowids import UNKNOWN_VERSION
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.stream import run
from lancelake.table.open import AtVersion

_CREATED, _UPDATED = MetaColumn.CREATED_AT.value, MetaColumn.LAST_UPDATED_AT.value


def inserted_rows(snapshot: Snapshot, begin: int, end: int) -> pa.RecordBatchReader:
    """Stream the rows of a version that were created after `begin`, up to and including `end`."""
    condition = f"{_CREATED} > {begin} AND {_CREATED} <= {end}"
    touched = [f for f in _fragments(snapshot) if _has_run(f.created_at_versions, begin, end)]
    return _scan(snapshot, condition, touched)


def updated_rows(snapshot: Snapshot, begin: int, end: int) -> pa.RecordBatchReader:
    """Stream the rows of `begin` that were last updated after it, up to and including `end`."""
    changed = f"{_UPDATED} > {begin} AND {_UPDATED} <= {end}"
    touched = [f for f in _fragments(snapshot) if _has_run(f.last_updated_at_versions, begin, end)]
    return _scan(snapshot, f"{_CREATED} <= {begin} AND {changed}", touched)


def deleted_row_ids(snapshot: Snapshot, begin: int, end: int) -> pa.RecordBatchReader:
    """Stream the ids of rows that are in version `begin` and not in version `end`."""
    request = ChangeRequest(columns=(), kinds=frozenset({ChangeKind.DELETE}), is_net=True)
    planned = plan_changes(snapshot, AtVersion(begin), AtVersion(end), request)
    batches = (batch.select([ROW_ID]) for task in planned.tasks for batch in execute(task))
    schema = pa.schema([planned.schema.field(ROW_ID)])
    return pa.RecordBatchReader.from_batches(schema, batches)


def _fragments(snapshot: Snapshot) -> Sequence[Fragment]:
    ensure_row_ids(snapshot)
    return snapshot.manifest.fragments


def _has_run(versions: Sequenced, begin: int, end: int) -> bool:
    """Whether a row of a fragment may have a version in the range."""
    match versions:
        case None:
            return begin < UNKNOWN_VERSION <= end
        case ExternalFile():
            return True
        case bytes() as data:
            versions_of_rows = {version for _, version in rowids.decode_versions(data)}
            return any(begin < version <= end for version in versions_of_rows)


def _scan(
    snapshot: Snapshot, condition: str, fragments: Sequence[Fragment]
) -> pa.RecordBatchReader:
    request = ScanRequest(
        columns=(*snapshot.manifest.schema.names, ROW_ID, _CREATED, _UPDATED),
        filter=condition,
        fragment_ids=tuple(f.id for f in fragments),
    )
    return run(plan(snapshot, request))
