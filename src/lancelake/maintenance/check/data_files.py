"""Check of data files: sizes, footers, values."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from lancelake import errors
from lancelake.data.codec.file_ends import sound_end
from lancelake.data.column_reader import split
from lancelake.data.text_repair import StoredText
from lancelake.engine.port import Engine
from lancelake.format.fragment import DataFile, FileVersion, Fragment, version_from_numbers
from lancelake.format.ids import TOMBSTONE, FragmentId
from lancelake.format.logical_types import described
from lancelake.format.manifest import FeatureFlags
from lancelake.format.schema import Field, Schema
from lancelake.interrupts import pass_on
from lancelake.maintenance.check.finding import (
    Finding,
    Severity,
    Subject,
    encode,
    run_fragile_tasks,
    run_tasks,
)
from lancelake.scan.execute import execute
from lancelake.scan.plan import ScanTask
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.storage.table_files import FileAt

LOST = "Restore the file from a backup, or restore a version that does not need it."

_MAGIC = b"LANC"
_FOOTER = struct.Struct("<IHH4s")
_FILES_PER_TASK = 64
_FOOTERS_TASK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckEnds:
    """Data files whose footers are read."""

    files: tuple[tuple[DataFile, FileAt], ...]

    @property
    def memory_bytes(self) -> int:
        """Memory of a few footers."""
        return _FOOTERS_TASK_BYTES

    def run(self) -> bytes:
        """Read the footers and return the findings."""
        return encode(found for file, place in self.files for found in _end(file, place))


def check_footers(subject: Subject, engine: Engine | None = None) -> Iterator[Finding]:
    """Read the footer of every existing data file."""
    files = tuple(_present(subject))
    steps = range(0, len(files), _FILES_PER_TASK)
    tasks = tuple(CheckEnds(files=files[n : n + _FILES_PER_TASK]) for n in steps)
    yield from run_tasks(subject, "file footers", tasks, engine)


def _present(subject: Subject) -> Iterator[tuple[DataFile, FileAt]]:
    for _, file in subject.data_files():
        place = subject.place(file)
        if isinstance(place, FileAt) and isinstance(subject.sizes.of(place), int):
            yield file, place


def _end(file: DataFile, place: FileAt) -> Iterator[Finding]:
    try:
        tail, _ = place.store.get_suffix(place.path, length=_FOOTER.size)
    except errors.ObjectNotFoundError:
        # The file was removed after its size was requested.
        return
    if len(tail) < _FOOTER.size or not tail.endswith(_MAGIC):
        message = f"the file ends with {tail[-4:]!r} instead of {_MAGIC!r}"
        yield Finding(Severity.ERROR, "data-file-damaged", message, path=place.path, hint=LOST)
        return
    columns, major, minor, _ = _FOOTER.unpack(tail)
    try:
        version = version_from_numbers(major, minor)
    except errors.LanceTableError as error:
        yield Finding(Severity.ERROR, "file-version-unknown", error.problem, path=place.path)
        return
    if version is not _version(file):
        message = (
            f"the file itself has version {major}.{minor}, its entry "
            f"{file.file_major_version}.{file.file_minor_version}"
        )
        yield Finding(Severity.ERROR, "data-file-version", message, path=place.path)
        return
    if version is FileVersion.LEGACY:
        return
    try:
        sound_end(place)
    except errors.CorruptTableError as error:
        yield Finding(
            Severity.ERROR, "data-file-damaged", error.problem, path=place.path, hint=LOST
        )
        return
    if max(file.column_indices, default=-1) >= columns:
        message = (
            f"the entry lists column {max(file.column_indices)}, but the file has {columns} columns"
        )
        yield Finding(Severity.ERROR, "file-columns", message, path=place.path)


def _version(file: DataFile) -> FileVersion | None:
    try:
        return file.version
    except errors.LanceTableError:
        return None


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
    if isinstance(size, errors.LanceTableError):
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


# A column of a fragment: the field, and the files that it may come from.
Seen = set[tuple[Field, tuple[str, ...]]]

_VALUES_TASK_BYTES = 128 << 20

INVALID_TEXT = "text-not-utf8"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckColumns:
    """Columns of one fragment to read, each separately."""

    columns: tuple[tuple[Field, ScanTask], ...]

    @property
    def memory_bytes(self) -> int:
        """Memory of a few batches of one column."""
        return _VALUES_TASK_BYTES

    def run(self) -> bytes:
        """Read the columns and return the findings."""
        return encode(found for field, task in self.columns for found in _column(field, task))

    def parts(self) -> tuple[CheckColumns, ...]:
        """Return a task for each column."""
        return tuple(CheckColumns(columns=(column,)) for column in self.columns)

    def lost(self, reason: str) -> bytes:
        """Return the findings about columns that end the process which reads them."""
        problem = RuntimeError(f"to read it ends the process ({reason})")
        return encode(_unreadable(field, task.fragment, problem) for field, task in self.columns)


def check_rows(subject: Subject, seen: Seen, engine: Engine | None = None) -> Iterator[Finding]:
    """Decode each column of each fragment separately, except those in `seen`."""
    wanted: dict[FragmentId, list[tuple[Field, ScanTask]]] = {}
    for field in subject.schema.fields:
        request = ScanRequest(columns=(field.name,), include_deleted_rows=True)
        try:
            scan = plan(subject.snapshot, request)
        except errors.StorageUnavailableError:
            raise
        except errors.LanceTableError as error:
            message = f"column {field.name!r} cannot be read: {error.problem}"
            yield subject.error("column-unreadable", message)
            continue
        for task in scan.tasks:
            key = (field, tuple(file.path for file in task.fragment.files))
            if key not in seen:
                seen.add(key)
                wanted.setdefault(task.fragment.id, []).append((field, task))
    tasks = tuple(CheckColumns(columns=tuple(columns)) for columns in wanted.values())
    yield from run_fragile_tasks(subject, "values", tasks, engine)


def _column(field: Field, task: ScanTask) -> Iterator[Finding]:
    fragment = task.fragment
    rows = nulls = 0
    try:
        for batch in execute(task):
            rows += batch.num_rows
            nulls += forbidden_nulls(batch.column(0), described(field))
        if nulls and fragment.deletion_file is not None:
            nulls = _nulls_in_live_rows(field, task)
    except errors.StorageUnavailableError:
        raise
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001  # the codec panics on some damage
        pass_on(error)
        yield _invalid_text(field, task) or _unreadable(field, fragment, error)
        return
    if fragment.physical_rows not in (None, rows):
        message = (
            f"column {field.name!r} of fragment {fragment.id} has {rows} rows, "
            f"the manifest says {fragment.physical_rows}"
        )
        yield _of_column("row-count", message, fragment, field)
    if nulls:
        message = (
            f"column {field.name!r} of fragment {fragment.id} has {nulls} nulls but is not nullable"
        )
        yield _of_column("null-forbidden", message, fragment, field)


def _nulls_in_live_rows(field: Field, task: ScanTask) -> int:
    """Count the nulls again without deleted rows: a rewritten column has nulls in their place."""
    live = replace(task, spec=replace(task.spec, include_deleted_rows=False))
    return sum(forbidden_nulls(batch.column(0), described(field)) for batch in execute(live))


def _invalid_text(field: Field, task: ScanTask) -> Finding | None:
    """Return a finding about invalid UTF-8; None if a column is unreadable for another reason."""
    fragment, spec = task.fragment, task.spec
    column = StoredText(files=spec.files, manifest=spec.manifest_at, fragment=fragment, field=field)
    try:
        paths = column.invalid_paths()
    except errors.StorageUnavailableError:
        raise
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001  # the codec panics on some damage
        pass_on(error)
        return None
    if not paths:
        return None
    message = (
        f"column {field.name!r} of fragment {fragment.id} has strings that are not UTF-8, "
        f"so that none of its values can be read: {', '.join(paths)}"
    )
    return Finding(
        Severity.ERROR,
        INVALID_TEXT,
        message,
        path=_text_file(fragment, field),
        hint="Replace the invalid bytes with `lancelake repair --replace-invalid-utf8 --apply`.",
        fragment=fragment.id,
        column=field.name,
    )


def _of_column(code: str, message: str, fragment: Fragment, field: Field) -> Finding:
    place = _path(fragment)
    return Finding(
        Severity.ERROR, code, message, path=place, fragment=fragment.id, column=field.name
    )


def _unreadable(field: Field, fragment: Fragment, error: BaseException) -> Finding:
    message = f"column {field.name!r} of fragment {fragment.id} cannot be read: {_reason(error)}"
    return _of_column("column-unreadable", message, fragment, field)


def forbidden_nulls(array: pa.Array, field: Field) -> int:
    """Count the nulls, at any depth, of fields that are not nullable."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    found = 0 if field.nullable else int(array.null_count)
    if pa.types.is_struct(array.type) and len(field.children) == array.type.num_fields:
        # Children of a null struct do not count.
        there = array.filter(array.is_valid())
        members = (there.field(i) for i in range(array.type.num_fields))
        return found + sum(map(forbidden_nulls, members, field.children))
    if pa.types.is_map(array.type) and field.children:
        keys, items = array.keys, array.items
        parts = field.children[0].children
        return found + sum(map(forbidden_nulls, (keys, items), parts))
    if _is_list(array.type) and len(field.children) == 1:
        return found + forbidden_nulls(pc.list_flatten(array), field.children[0])
    return found


def _is_list(dtype: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_list(dtype) or types.is_large_list(dtype) or types.is_fixed_size_list(dtype)
    )


def _reason(error: BaseException) -> str:
    return error.problem if isinstance(error, errors.LanceTableError) else str(error)


def _text_file(fragment: Fragment, field: Field) -> str | None:
    """Return the file of a column; None if there are several."""
    parts = split(fragment, Schema(fields=(field,)))
    return parts[0].file.path if len(parts) == 1 else None


def _path(fragment: Fragment) -> str | None:
    return fragment.files[0].path if len(fragment.files) == 1 else None
