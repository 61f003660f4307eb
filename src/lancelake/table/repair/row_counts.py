"""Repair counts of rows and of deleted rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pyroaring import BitMap

from lancelake.clock import SystemIds
from lancelake.data.open_columns import stored_rows
from lancelake.errors import LanceTableError, StorageUnavailableError
from lancelake.format import deletion, layout
from lancelake.format.fragment import DeletionFile, DeletionFileType, Fragment
from lancelake.format.frozen import FrozenMap
from lancelake.table.repair.context import RepairContext
from lancelake.table.repair.draft import Draft

COUNTS = frozenset({"deletion-count", "deletion-range", "row-ids-length", "row-count"})


def repair_row_counts(case: RepairContext) -> Draft:
    """Count the rows of files, and of deletion files, where the manifest may be wrong."""
    if not case.codes & COUNTS:
        return case.draft
    changed, steps = [], []
    for fragment in case.subject.fragments:
        if _is_suspect(case, fragment):
            rows = _stored(case, fragment)
            if rows not in (None, fragment.physical_rows):
                changed.append(replace(fragment, physical_rows=rows))
                steps.append(f"fragment {fragment.id}: {rows} rows, not {fragment.physical_rows}")
    return case.draft.with_fragments(changed, steps)


def repair_deletions(case: RepairContext) -> Draft:
    """Correct the counts of deletion files, and remove rows that do not exist from them."""
    if not case.codes & {"deletion-count", "deletion-range"}:
        return case.draft
    changed: list[Fragment] = []
    steps: list[str] = []
    files: dict[str, bytes] = dict(case.draft.files)
    for fragment in case.subject.fragments:
        rows = case.deletions.of(case.subject, fragment)
        entry = fragment.deletion_file
        if rows is None or entry is None:
            continue
        there = _existing(rows, fragment.physical_rows)
        if len(there) < len(rows):
            entry = _rewritten(case, fragment, there, files)
        elif entry.num_deleted_rows not in (None, len(rows)):
            entry = replace(entry, num_deleted_rows=len(rows))
        if entry != fragment.deletion_file:
            changed.append(replace(fragment, deletion_file=entry))
            steps.append(f"fragment {fragment.id}: {len(there)} deleted rows")
    return replace(case.draft.with_fragments(changed, steps), files=FrozenMap(files))


def _is_suspect(case: RepairContext, fragment: Fragment) -> bool:
    if case.options.reads_data:
        return True
    rows = case.deletions.of(case.subject, fragment)
    physical = fragment.physical_rows
    if physical is None or (rows and rows.max() >= physical):
        return True
    return "row-ids-length" in case.codes and fragment.row_ids is not None


def _stored(case: RepairContext, fragment: Fragment) -> int | None:
    """Count the rows of a fragment's files; None if they cannot be opened or disagree."""
    try:
        counts = set(_counts(case, fragment))
    except StorageUnavailableError:
        raise
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException:  # noqa: BLE001  # the codec panics on some damage
        return None
    return counts.pop() if len(counts) == 1 else None


def _counts(case: RepairContext, fragment: Fragment) -> Iterator[int]:
    for file in fragment.files:
        yield stored_rows(case.subject.snapshot.files, file)


def _existing(rows: BitMap, physical: int | None) -> BitMap:
    return rows if physical is None or not rows else rows & BitMap(range(physical))


def _rewritten(
    case: RepairContext, fragment: Fragment, rows: BitMap, files: dict[str, bytes]
) -> DeletionFile | None:
    """Plan a deletion file for these rows; None if there are no rows."""
    if not rows:
        return None
    kind = DeletionFileType.BITMAP
    unique, read = SystemIds().random_u64(), case.head.version
    path = layout.deletion_file(
        fragment_id=fragment.id, read_version=read, unique=unique, suffix=kind.value
    )
    files[path] = deletion.encode(rows, kind)
    return DeletionFile(file_type=kind, read_version=read, id=unique, num_deleted_rows=len(rows))


def decoded(path: str, data: bytes) -> BitMap | LanceTableError:
    """Decode a planned deletion file."""
    try:
        return deletion.decode(data, DeletionFileType(path.rpartition(".")[2]))
    except LanceTableError as error:
        return error
