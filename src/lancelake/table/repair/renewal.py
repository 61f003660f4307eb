"""What does every commit set right by itself?"""

from __future__ import annotations

from dataclasses import replace

from lancelake.table.repair.context import RepairContext
from lancelake.table.repair.draft import Draft

_PROBLEMS = {
    "flag-missing": "feature flags by what the version holds",
    "flag-words-differ": "feature flags for readers and writers alike",
    "fragment-id-range": "the highest fragment id",
    "fragment-empty": "fragments without rows leave the list",
    "row-count-missing": "row counts, read from the files",
    "transaction-missing": "a newest version whose transaction is recorded",
    "transaction-damaged": "a newest version whose transaction can be read",
    "transaction-order": "a newest version whose transaction is in order",
}
_NOTES = {
    "flag-idle": "feature flags by what the version holds",
    "file-dead": "files without live columns leave the list",
    "file-size-missing": "sizes of data files, as the store tells them",
    "operation-unknown": "a newest version whose operation is known",
}


def renew(case: RepairContext) -> Draft:
    """Ask for a new version where that alone helps."""
    helped = _PROBLEMS | (_NOTES if case.wishes.notes else {})
    steps = tuple(dict.fromkeys(what for code, what in helped.items() if code in case.codes))
    if not steps:
        return case.draft
    return replace(case.draft, is_renewed=True, steps=(*case.draft.steps, *steps))
