"""Drop fragments with missing or unreadable files."""

from __future__ import annotations

from dataclasses import replace

from lancelake.format.fragment import Fragment
from lancelake.storage.table_files import FileAt
from lancelake.table.repair.context import RepairContext
from lancelake.table.repair.draft import Draft

CODES = frozenset(
    {
        "data-file-missing",
        "data-file-size",
        "data-file-damaged",
        "data-file-version",
        "file-unreadable",
        "file-escapes",
        "base-undeclared",
        "file-columns",
        "file-column-twice",
        "file-field-unknown",
        "file-version-unknown",
        "column-unreadable",
        "row-count",
    }
)


def drop_lost(case: RepairContext) -> Draft:
    """Drop unreadable fragments if that is allowed; the rows of the others are kept."""
    if not case.options.drop_lost or not case.codes & CODES:
        return case.draft
    lost = {f.id for f in case.subject.fragments if _is_lost(case, f)}
    if not lost:
        return case.draft
    kept = tuple(f for f in case.draft.fragments if f.id not in lost)
    steps = (
        f"fragment {f.id}: dropped, with {_rows(f)}" for f in case.draft.fragments if f.id in lost
    )
    return replace(case.draft, fragments=kept, steps=(*case.draft.steps, *steps))


def _is_lost(case: RepairContext, fragment: Fragment) -> bool:
    for file in fragment.files:
        place = case.subject.place(file)
        size = case.subject.sizes.of(place) if isinstance(place, FileAt) else None
        if not isinstance(size, int):
            return True
    is_whole = case.codes.isdisjoint(CODES - {"data-file-missing", "file-unreadable"})
    return not is_whole and not case.is_readable(fragment)


def _rows(fragment: Fragment) -> str:
    rows = fragment.live_rows
    return "an unknown number of rows" if rows is None else f"{rows:,} rows"
