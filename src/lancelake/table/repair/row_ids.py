"""Repair row ids that are lost, duplicate, or above the next row id."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from pyroaring import BitMap64

from lancelake.errors import LanceTableError
from lancelake.format.fragment import Fragment
from lancelake.format.rowids import codec, segment
from lancelake.format.rowids.segment import Range
from lancelake.table.repair.context import RepairContext
from lancelake.table.repair.draft import Draft

LOST = frozenset({"row-ids-damaged", "row-ids-length"})
TWICE = "row-ids-twice"
RANGE = "row-ids-range"


def repair_row_ids(case: RepairContext) -> Draft:
    """Restore row ids from earlier versions where they are lost or belong to other rows."""
    if not case.codes & (LOST | {TWICE}):
        return case.draft
    changed, steps = [], []
    for fragment in case.subject.fragments:
        if fragment.row_ids is None or (_ids(fragment) is not None and TWICE not in case.codes):
            continue
        then = (f.row_ids for f in case.past.fragments(fragment))
        found = (replace(fragment, row_ids=ids) for ids in then if ids is not None)
        right = next((f for f in found if _ids(f) is not None), fragment)
        if right != fragment:
            changed.append(right)
            steps.append(f"fragment {fragment.id}: row ids restored from an earlier version")
    return case.draft.with_fragments(changed, steps)


def renew_row_ids(case: RepairContext) -> Draft:
    """Assign new ids to rows of fragments whose ids are lost or duplicate, if allowed."""
    if not case.options.new_row_ids or not case.codes & (LOST | {TWICE}):
        return case.draft
    first = max(case.draft.next_row_id, _highest(case) + 1)
    taken = BitMap64()
    changed, steps = [], []
    for fragment in case.subject.fragments:
        ids = _ids(fragment)
        if fragment.row_ids is None or fragment.physical_rows is None:
            continue
        if ids is not None and len(BitMap64(ids.tolist())) == len(ids):
            mine = BitMap64(ids.tolist())
            if not mine & taken:
                taken |= mine
                continue
        end = first + fragment.physical_rows
        fresh = codec.encode_row_ids((Range(start=first, end=end),))
        changed.append(replace(fragment, row_ids=fresh))
        steps.append(f"fragment {fragment.id}: new row ids, starting at {first}")
        first = end
    return replace(case.draft.with_fragments(changed, steps), next_row_id=first)


def raise_next_row_id(case: RepairContext) -> Draft:
    """Raise the next row id above all existing ids."""
    needed = _highest(case) + 1
    if RANGE not in case.codes or needed <= case.draft.next_row_id:
        return case.draft
    step = f"next row id: {needed}, not {case.draft.next_row_id}"
    return replace(case.draft, next_row_id=needed, steps=(*case.draft.steps, step))


def _highest(case: RepairContext) -> int:
    found = (_ids(fragment) for fragment in case.subject.fragments)
    return max((int(ids.max()) for ids in found if ids is not None and len(ids)), default=-1)


def _ids(fragment: Fragment) -> np.ndarray | None:
    """Return the row ids of a fragment; None if they are unusable."""
    if not isinstance(fragment.row_ids, bytes):
        return None
    try:
        parts = codec.decode_row_ids(fragment.row_ids)
        if fragment.physical_rows not in (None, sum(segment.length(part) for part in parts)):
            return None
        values = [segment.values(part) for part in parts]
    except LanceTableError:
        return None
    return np.concatenate(values) if values else np.array([], dtype=np.uint64)
