"""Changes of a table's columns by version."""

from __future__ import annotations

from itertools import chain, pairwise

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.errors import LanceTableError
from lancelake.format.operations import Operation
from lancelake.format.schema import Schema
from lancelake.table.describe import operations
from lancelake.table.describe.documents import Json, document
from lancelake.table.describe.log import line_snapshots, version_names
from lancelake.table.diff import column_changes

_NOTHING = Schema(fields=())


@names_table
def schema_history(newest: Snapshot, before: int | None, most: int) -> Json:
    """Return the versions that changed columns, newest first, among some versions.

    At most `most` versions older than `before` are examined; `next` continues with older ones, and
    is None at the oldest. The oldest version is listed with all its columns.
    """
    names = [n for n in version_names(newest) if before is None or n.version < before]
    # One version more, with which the oldest one examined is compared.
    loaded = line_snapshots(newest.location, names[: most + 1])
    found = (each for each in loaded if isinstance(each, Snapshot))
    last = names[min(most, len(names)) - 1].version if names else 0
    changes = [
        _change(snapshot, older)
        for snapshot, older in pairwise(chain(found, [None]))
        if snapshot is not None
        and snapshot.version >= last
        and (older is None or _changed(snapshot, older))
    ]
    examined = names[:most]
    return {
        "changes": changes,
        "examined": [examined[0].version, examined[-1].version] if examined else None,
        "next": examined[-1].version if len(names) > most else None,
    }


def _changed(snapshot: Snapshot, older: Snapshot) -> bool:
    return bool(column_changes(older.manifest.schema, snapshot.manifest.schema))


def _change(snapshot: Snapshot, older: Snapshot | None) -> Json:
    before = _NOTHING if older is None else older.manifest.schema
    written = snapshot.manifest.timestamp
    return {
        "version": snapshot.version,
        "written_at": written.isoformat() if written else None,
        "operation": operations.name(_operation(snapshot)),
        "is_oldest": older is None,
        "columns": document(column_changes(before, snapshot.manifest.schema)),
    }


def _operation(snapshot: Snapshot) -> Operation | None:
    try:
        done = snapshot.transaction
    except LanceTableError:
        return None
    return None if done is None else done.operation
