"""End of a MemWAL: whether the newest version of a table still has it, and what ended it."""

from __future__ import annotations

from lancelake.commit.snapshot import Snapshot
from lancelake.commit.versions import list_versions
from lancelake.errors import AlreadyExistsError, InvalidRequestError, WriterFencedError
from lancelake.format.index_meta import MEM_WAL
from lancelake.format.operations import Overwrite, Restore
from lancelake.memwal.shape import RowShape
from lancelake.table.open import Latest, open_snapshot


def has_mem_wal(version: Snapshot) -> bool:
    """Whether a version has a MemWAL."""
    return any(index.name == MEM_WAL for index in version.indices)


def ensure_ended(base: Snapshot) -> None:
    """Raise AlreadyExistsError if the newest version of the table has a MemWAL."""
    newest = _newest(base)
    if has_mem_wal(newest):
        raise AlreadyExistsError("the table already has a MemWAL", version=newest.version)


def ensure_not_ended(base: Snapshot) -> Snapshot:
    """Return the newest version of the table; raise WriterFencedError if it has no MemWAL."""
    newest = _newest(base)
    if not has_mem_wal(newest):
        raise WriterFencedError(
            f"version {newest.version} of the table has no MemWAL",
            action="Rows that were not merged have been discarded.",
        )
    return newest


def ensure_writable(base: Snapshot, shape: RowShape) -> None:
    """Raise InvalidRequestError if the newest version of the table does not take rows of a shape.

    An overwrite numbers columns from the start: values would get into other columns.
    """
    newest = _newest(base)
    if newest.version == base.version:
        return
    if not has_mem_wal(newest):
        raise InvalidRequestError(f"version {newest.version} of the table has no MemWAL")
    now = {field.id: (field.name, field.logical_type) for field in newest.manifest.schema.fields}
    changed = [
        f"column {field.name}"
        for field in shape.table.fields
        if now.get(field.id, (field.name, field.logical_type)) != (field.name, field.logical_type)
    ]
    if tuple(field.name for field in newest.manifest.schema.primary_key()) != shape.keys:
        changed.append("the primary key")
    if changed:
        raise InvalidRequestError(
            f"{changed[0]} has changed by version {newest.version}",
            action="Open a new writer on the newest version.",
        )


def was_replaced(base: Snapshot) -> bool:
    """Whether an overwrite or a restore has ended the last MemWAL before a version.

    Rows in its regions then belong to a table that no longer exists. False when another change has
    ended it, and when the versions that would show it were cleaned up.
    """
    names = [name for name in list_versions(base.location) if name.version <= base.version]
    was_restored = False
    for name in reversed(names):
        version = Snapshot.load(base.location, name)
        if has_mem_wal(version):
            return was_restored
        operation = None if version.transaction is None else version.transaction.operation
        if isinstance(operation, Overwrite):
            return True
        was_restored = isinstance(operation, Restore)
    return False


def _newest(base: Snapshot) -> Snapshot:
    return open_snapshot(base.location, Latest(), main=base.main_location)
