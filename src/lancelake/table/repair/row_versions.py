"""Repair created-at and last-updated-at versions of rows."""

from __future__ import annotations

from dataclasses import replace

from lancelake.errors import LanceTableError
from lancelake.format.fragment import Fragment, Sequenced
from lancelake.format.rowids import codec
from lancelake.format.rowids.lineage import UNKNOWN_VERSION, VersionSequence
from lancelake.table.repair.context import RepairContext
from lancelake.table.repair.draft import Draft

CODES = frozenset({"row-versions-damaged", "row-versions-length", "row-versions-range"})

Runs = tuple[tuple[int, int], ...]


def repair_row_versions(case: RepairContext) -> Draft:
    """Restore row versions from earlier versions, or else adjust them to the number of rows."""
    if not case.codes & CODES:
        return case.draft
    changed, steps = [], []
    for fragment in case.subject.fragments:
        made = _repaired(case, fragment, "created_at_versions")
        touched = _repaired(case, fragment, "last_updated_at_versions")
        if made is None and touched is None:
            continue
        changed.append(
            replace(
                fragment,
                created_at_versions=made or fragment.created_at_versions,
                last_updated_at_versions=touched or fragment.last_updated_at_versions,
            )
        )
        steps.append(f"fragment {fragment.id}: versions in which its rows were written")
    return case.draft.with_fragments(changed, steps)


def _repaired(case: RepairContext, fragment: Fragment, name: str) -> bytes | None:
    """Return the corrected sequence; None if it is valid, or unknown."""
    now: Sequenced = getattr(fragment, name)
    if not isinstance(now, bytes) or fragment.physical_rows is None:
        return None
    newest = case.head.version
    if _is_sound(now, fragment.physical_rows, newest):
        return None
    for then in case.past.fragments(fragment):
        earlier = getattr(then, name)
        if isinstance(earlier, bytes) and _is_sound(earlier, fragment.physical_rows, newest):
            return earlier
    return VersionSequence(_fitted(_runs(now) or (), fragment.physical_rows, newest)).encode()


def _is_sound(data: bytes, rows: int, newest: int) -> bool:
    runs = _runs(data)
    if runs is None or sum(count for count, _ in runs) != rows:
        return False
    return all(version <= newest for _, version in runs)


def _fitted(runs: Runs, rows: int, newest: int) -> Runs:
    """Adjust the sequence to the number of rows; unknown versions become the first version."""
    found: list[tuple[int, int]] = []
    for count, version in runs:
        fitting = min(count, rows)
        if fitting:
            found.append((fitting, min(version, newest)))
        rows -= fitting
    if rows:
        found.append((rows, found[-1][1] if found else UNKNOWN_VERSION))
    return tuple(found)


def _runs(data: bytes) -> Runs | None:
    try:
        return codec.decode_versions(data)
    except LanceTableError:
        return None
