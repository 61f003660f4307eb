"""Check data file entries, and that the files exist with the recorded size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from lancelake.errors import LanceTableError
from lancelake.format.file_version import FileVersion
from lancelake.format.flags import FeatureFlags
from lancelake.format.fragment import DataFile, Fragment
from lancelake.format.ids import TOMBSTONE
from lancelake.storage.table_files import FileAt
from lancelake.table.check.finding import Finding
from lancelake.table.check.footers import LOST
from lancelake.table.check.subject import Subject


def check_data_files(subject: Subject) -> Iterator[Finding]:
    """Check every data file entry, and that its file exists with the recorded size."""
    places = [subject.place(file) for _, file in subject.data_files()]
    subject.sizes.load(place for place in places if isinstance(place, FileAt))
    for (fragment, file), place in zip(subject.data_files(), places, strict=True):
        yield from _entry(subject, file)
        if isinstance(place, FileAt):
            yield from _file(subject, fragment, file, place)
        else:
            code = "file-escapes" if subject.has_base(file.base_id) else "base-undeclared"
            message = f"a data file of fragment {fragment.id} cannot be located: {place.problem}"
            yield subject.error(code, message, path=file.path)
    for fragment in subject.fragments:
        yield from _suppliers(subject, fragment)
    unsized = sum(1 for _, file in subject.data_files() if _is_unsized(file))
    if unsized:
        yield subject.info(
            "file-size-missing",
            f"the sizes of {unsized} data files are not recorded; readers have to request "
            "them from the store",
            hint="Any commit records them.",
        )


def _entry(subject: Subject, file: DataFile) -> Iterator[Finding]:
    version = _version(file)
    if version is None:
        yield subject.error(
            "file-version-unknown",
            f"data file version {file.file_major_version}.{file.file_minor_version} is not "
            "supported by this release",
            path=file.path,
            hint="Upgrade.",
        )
        return
    yield from _same_version(subject, file, version)
    if version is not FileVersion.LEGACY:
        yield from _columns(subject, file)
    strange = sorted({f for f in file.fields if f < 0 and f != TOMBSTONE})
    if strange:
        yield subject.error(
            "file-field-unknown", f"the file lists the field ids {strange}", path=file.path
        )
    known = subject.schema.by_id()
    if not any(f in known for f in file.fields):
        yield subject.info(
            "file-dead", "the file no longer holds any column of the schema", path=file.path
        )


def _same_version(subject: Subject, file: DataFile, version: FileVersion) -> Iterator[Finding]:
    manifest = subject.snapshot.manifest
    may_mix = manifest.reader_feature_flags & FeatureFlags.MIXED_FILE_VERSIONS
    if version is not manifest.data_version and not may_mix:
        yield subject.finding(
            subject.strict,
            "file-version-mixed",
            f"the file has format {version.value}, the table has {manifest.data_version.value}",
            path=file.path,
            hint="Official releases refuse to write to such a table; rewrite its rows.",
        )


def _columns(subject: Subject, file: DataFile) -> Iterator[Finding]:
    if len(file.fields) != len(file.column_indices):
        yield subject.error(
            "file-columns",
            f"the entry lists {len(file.fields)} fields but {len(file.column_indices)} columns",
            path=file.path,
        )
        return
    live = [
        column
        for field, column in zip(file.fields, file.column_indices, strict=True)
        if field >= 0 and column >= 0
    ]
    shared = sorted(column for column, count in Counter(live).items() if count > 1)
    if shared:
        yield subject.error(
            "file-column-twice", f"several fields refer to column {shared[0]}", path=file.path
        )


def _file(subject: Subject, fragment: Fragment, file: DataFile, place: FileAt) -> Iterator[Finding]:
    size = subject.sizes.of(place)
    if isinstance(size, LanceTableError):
        yield subject.error("file-unreadable", size.problem, path=place.path)
    elif size is None:
        yield subject.error(
            "data-file-missing",
            f"a data file of fragment {fragment.id} does not exist",
            path=place.path,
            hint=LOST,
        )
    elif file.file_size_bytes not in (None, size) and _version(file) is not FileVersion.LEGACY:
        # Official 4.0 records a wrong size for legacy files.
        yield subject.error(
            "data-file-size",
            f"the file has {size} bytes, but {file.file_size_bytes} are recorded",
            path=place.path,
            hint=LOST,
        )


def _suppliers(subject: Subject, fragment: Fragment) -> Iterator[Finding]:
    known = subject.schema.by_id()
    counts = Counter(f for file in fragment.files for f in set(file.fields) if f in known)
    for field_id, count in sorted(counts.items()):
        if count > 1:
            yield subject.finding(
                subject.strict,
                "field-in-two-files",
                f"{count} files of fragment {fragment.id} supply "
                f"{subject.schema.path_of(field_id)} (field {field_id}); readers take the first",
                hint="Any commit by an official release assigns new field ids.",
            )


def _is_unsized(file: DataFile) -> bool:
    return file.file_size_bytes is None and _version(file) is not FileVersion.LEGACY


def _version(file: DataFile) -> FileVersion | None:
    try:
        return file.version
    except LanceTableError:
        return None
