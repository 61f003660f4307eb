"""Repair data file entries: columns, versions and sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lancelake.errors import LanceTableError
from lancelake.format.file_version import FileVersion
from lancelake.format.fragment import DataFile, Fragment
from lancelake.format.ids import TOMBSTONE
from lancelake.storage.table_files import FileAt
from lancelake.table.repair.context import RepairContext
from lancelake.table.repair.draft import Draft

CODES = frozenset(
    {
        "data-file-size",
        "file-columns",
        "file-column-twice",
        "file-field-unknown",
        "file-version-unknown",
        "file-version-mixed",
        "data-file-version",
    }
)


def repair_file_entries(case: RepairContext) -> Draft:
    """Take entries from earlier versions, and the sizes of readable files from the store."""
    if not case.codes & CODES:
        return case.draft
    changed, steps = [], []
    for fragment in case.subject.fragments:
        right = replace(fragment, files=tuple(_repaired(case, fragment, f) for f in fragment.files))
        if right != fragment and case.is_readable(right):
            changed.append(right)
            steps += list(_steps(fragment, right))
    return case.draft.with_fragments(changed, steps)


def _repaired(case: RepairContext, fragment: Fragment, file: DataFile) -> DataFile:
    if _is_faulty(case, file):
        found = (_renewed(file, then) for then in case.past.file(fragment, file))
        file = next((each for each in found if not _is_faulty(case, each)), file)
    place = case.subject.place(file)
    size = case.subject.sizes.of(place) if isinstance(place, FileAt) else None
    is_wrong = isinstance(size, int) and file.file_size_bytes not in (None, size)
    if is_wrong and _version(file) not in (None, FileVersion.LEGACY):
        assert isinstance(size, int)
        return replace(file, file_size_bytes=size)
    return file


def _renewed(now: DataFile, then: DataFile) -> DataFile:
    """Return the earlier entry; columns dropped since stay dropped."""
    if len(now.fields) != len(then.fields):
        return then
    pairs = zip(now.fields, then.fields, strict=True)
    return replace(then, fields=tuple(n if n == TOMBSTONE else t for n, t in pairs))


def _is_faulty(case: RepairContext, file: DataFile) -> bool:
    version = _version(file)
    if version is None or version is not case.head.manifest.data_version:
        return True
    if any(field < 0 and field != TOMBSTONE for field in file.fields):
        return True
    if version is FileVersion.LEGACY:
        return False
    if len(file.fields) != len(file.column_indices):
        return True
    pairs = zip(file.fields, file.column_indices, strict=True)
    live = [column for field, column in pairs if field >= 0 and column >= 0]
    return len(set(live)) < len(live)


def _version(file: DataFile) -> FileVersion | None:
    try:
        return file.version
    except LanceTableError:
        return None


def _steps(before: Fragment, after: Fragment) -> Iterator[str]:
    for old, new in zip(before.files, after.files, strict=True):
        sized = replace(old, file_size_bytes=new.file_size_bytes)
        if sized != new:
            yield f"data file {new.path}: columns and version restored from an earlier version"
        if old.file_size_bytes != new.file_size_bytes:
            yield f"data file {new.path}: {new.file_size_bytes} bytes, not {old.file_size_bytes}"
