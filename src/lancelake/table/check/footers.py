"""Check the footers of data files: magic, version and number of columns."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from lancelake.engine.port import Engine
from lancelake.errors import LanceTableError, ObjectNotFoundError
from lancelake.format import file_version
from lancelake.format.file_version import FileVersion
from lancelake.format.fragment import DataFile
from lancelake.storage.open import open_store
from lancelake.storage.table_files import FileAt
from lancelake.table.check.finding import Finding
from lancelake.table.check.subject import Subject
from lancelake.table.check.task_findings import TaskFinding, encode, run_tasks

LOST = "Restore the file from a backup, or restore a version that does not need it."

_MAGIC = b"LANC"
_FOOTER = struct.Struct("<IHH4s")
_FILES_PER_TASK = 64
_TASK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckEnds:
    """Data files whose footers are read."""

    files: tuple[tuple[DataFile, FileAt], ...]

    @property
    def memory_bytes(self) -> int:
        """Memory of a few footers."""
        return _TASK_BYTES

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


def _end(file: DataFile, place: FileAt) -> Iterator[TaskFinding]:
    try:
        tail, _ = open_store(place.root).get_suffix(place.path, length=_FOOTER.size)
    except ObjectNotFoundError:
        # The file was removed after its size was requested.
        return
    if len(tail) < _FOOTER.size or not tail.endswith(_MAGIC):
        message = f"the file ends with {tail[-4:]!r} instead of {_MAGIC!r}"
        yield TaskFinding(code="data-file-damaged", message=message, path=place.path, hint=LOST)
        return
    columns, major, minor, _ = _FOOTER.unpack(tail)
    try:
        version = file_version.from_numbers(major, minor)
    except LanceTableError as error:
        yield TaskFinding(code="file-version-unknown", message=error.problem, path=place.path)
        return
    if version is not _version(file):
        message = (
            f"the file itself has version {major}.{minor}, its entry "
            f"{file.file_major_version}.{file.file_minor_version}"
        )
        yield TaskFinding(code="data-file-version", message=message, path=place.path)
    elif version is not FileVersion.LEGACY and max(file.column_indices, default=-1) >= columns:
        message = (
            f"the entry lists column {max(file.column_indices)}, but the file has {columns} columns"
        )
        yield TaskFinding(code="file-columns", message=message, path=place.path)


def _version(file: DataFile) -> FileVersion | None:
    try:
        return file.version
    except LanceTableError:
        return None
