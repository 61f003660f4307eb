"""Repair index entries that are unusable or incorrect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pyroaring import BitMap

from lancelake.errors import LanceTableError
from lancelake.format.index_meta import FRAGMENT_REUSE, IndexMetadata
from lancelake.index.stored_segment import StoredIndices
from lancelake.table.check.finding import Finding
from lancelake.table.check.index_files import check_segment
from lancelake.table.check.indices import check_entry_alone
from lancelake.table.repair.context import RepairContext
from lancelake.table.repair.draft import Draft

UNUSABLE = frozenset(
    {
        "index-field-gone",
        "index-bitmap-damaged",
        "index-details-damaged",
        "index-file-missing",
        "index-file-size",
        "index-file-damaged",
        "file-escapes",
        "base-undeclared",
    }
)


def repair_indices(case: RepairContext) -> Draft:
    """Drop unusable entries; the steps name the indices to rebuild."""
    kept: list[IndexMetadata] = []
    steps: list[str] = []
    covered: dict[str, BitMap] = {}
    for index in case.draft.indices:
        reason = None if index.is_system else _reason(case, index, kept, covered)
        if reason is not None:
            steps.append(f"index {index.name!r}: segment dropped: {reason}")
            continue
        right = _undated(index, case.head.version)
        if right != index:
            steps.append(f"index {index.name!r}: built from version {right.dataset_version}")
        kept.append(right)
    if not steps:
        return case.draft
    return replace(case.draft, indices=tuple(kept), steps=(*case.draft.steps, *steps))


def prune_coverage(case: RepairContext) -> Draft:
    """Remove fragments that do not exist from index coverage, if infos are repaired as well."""
    if not case.options.notes or any(i.name == FRAGMENT_REUSE for i in case.draft.indices):
        return case.draft
    existing = BitMap(fragment.id for fragment in case.draft.fragments)
    found = tuple(_pruned(index, existing) for index in case.draft.indices)
    names = (o.name for o, n in zip(case.draft.indices, found, strict=True) if o != n)
    steps = tuple(f"index {name!r}: coverage limited to existing fragments" for name in names)
    return replace(case.draft, indices=found, steps=(*case.draft.steps, *steps))


def _findings(case: RepairContext, index: IndexMetadata) -> Iterator[Finding]:
    yield from check_entry_alone(case.subject, index)
    if case.options.reads_data:
        yield from check_segment(case.subject, StoredIndices(case.head), index)


def _reason(
    case: RepairContext,
    index: IndexMetadata,
    kept: list[IndexMetadata],
    covered: dict[str, BitMap],
) -> str | None:
    """Return why an entry is unusable given those that are kept; None if it is usable."""
    if any(other.uuid == index.uuid for other in kept):
        return "it is a duplicate"
    for finding in _findings(case, index):
        if finding.code in UNUSABLE:
            action = "it is rebuilt" if case.options.rebuild_indices else "rebuild it"
            return f"{finding.message}; {action}"
    mine = index.fragments()
    others = covered.setdefault(index.name, BitMap())
    if mine is not None and mine & others & BitMap(f.id for f in case.subject.fragments):
        return "another segment covers the same fragments"
    others |= mine or BitMap()
    return None


def _undated(index: IndexMetadata, newest: int) -> IndexMetadata:
    if index.dataset_version <= newest:
        return index
    return replace(index, dataset_version=type(index.dataset_version)(newest))


def _pruned(index: IndexMetadata, existing: BitMap) -> IndexMetadata:
    try:
        covered = index.fragments()
    except LanceTableError:
        return index
    if index.is_system or covered is None or covered <= existing:
        return index
    return replace(index, fragment_bitmap=bytes((covered & existing).serialize()))
