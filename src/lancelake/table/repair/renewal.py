"""Fields that every commit corrects."""

from __future__ import annotations

from dataclasses import replace

from lancelake.table.repair.context import RepairContext
from lancelake.table.repair.draft import Draft

_PROBLEMS = {
    "flag-missing": "feature flags recomputed from the contents of the version",
    "flag-words-differ": "feature flags set for both readers and writers",
    "fragment-id-range": "the highest fragment id",
    "fragment-empty": "fragments without rows removed from the list",
    "row-count-missing": "row counts read from the files",
    "transaction-missing": "new version with a recorded transaction",
    "transaction-damaged": "new version with a readable transaction",
    "transaction-order": "new version with a valid transaction",
}
_NOTES = {
    "flag-idle": "feature flags recomputed from the contents of the version",
    "file-dead": "files without live columns removed from the list",
    "file-size-missing": "sizes of data files read from the store",
    "operation-unknown": "new version with a known operation",
}


def renew(case: RepairContext) -> Draft:
    """Request a new version if that alone corrects a finding."""
    helped = _PROBLEMS | (_NOTES if case.options.notes else {})
    steps = tuple(dict.fromkeys(what for code, what in helped.items() if code in case.codes))
    if not steps:
        return case.draft
    return replace(case.draft, is_renewed=True, steps=(*case.draft.steps, *steps))
