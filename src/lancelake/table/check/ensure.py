"""Raise an error if a version is inconsistent, or its files have other numbers of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from lancelake.commit.snapshot import Snapshot
from lancelake.data.open_columns import stored_rows
from lancelake.errors import CorruptTableError, LanceTableError, StorageUnavailableError
from lancelake.format.fragment import Fragment
from lancelake.format.ids import FragmentId
from lancelake.storage.table_files import TableFiles
from lancelake.table.check.file_sizes import FileSizes
from lancelake.table.check.finding import Finding, Severity
from lancelake.table.check.subject import Subject
from lancelake.table.check.task_findings import TaskFinding, encode, run_tasks
from lancelake.table.check.version import VersionChecks

_FRAGMENTS_PER_TASK = 16
_TASK_BYTES = 16 << 20


def ensure_in_order(snapshot: Snapshot, *, fragment: FragmentId | None = None) -> None:
    """Raise the first error found, in one fragment or in all of the version.

    Data files are opened, but no values are read.
    """
    subject = Subject(snapshot, FileSizes(), only=fragment)
    checks = VersionChecks(data=False)
    found = checks(subject) if fragment is None else checks.of_fragments(subject)
    for finding in chain(found, _row_counts(subject)):
        if finding.severity is Severity.ERROR:
            raise CorruptTableError(
                finding.message,
                table=snapshot.location.uri,
                version=snapshot.version,
                path=finding.path,
                action="Run `lancelake check` to list all findings, then `lancelake repair`.",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckCounts:
    """Fragments whose data files are opened."""

    files: TableFiles
    fragments: tuple[Fragment, ...]

    @property
    def memory_bytes(self) -> int:
        """Memory of a few open files."""
        return _TASK_BYTES

    def run(self) -> bytes:
        """Open the files and return the findings."""
        return encode(found for fragment in self.fragments for found in self._fragment(fragment))

    def _fragment(self, fragment: Fragment) -> Iterator[TaskFinding]:
        for file in fragment.files:
            try:
                rows = stored_rows(self.files, file)
            except StorageUnavailableError:
                raise
            except (KeyboardInterrupt, SystemExit, GeneratorExit):
                raise
            except BaseException as error:  # noqa: BLE001  # the codec panics on some damage
                reason = error.problem if isinstance(error, LanceTableError) else str(error)
                yield TaskFinding(code="file-unreadable", message=reason, path=file.path)
                continue
            if fragment.physical_rows not in (None, rows):
                message = (
                    f"the file holds {rows} rows of fragment {fragment.id}, "
                    f"the manifest records {fragment.physical_rows}"
                )
                yield TaskFinding(code="row-count", message=message, path=file.path)


def _row_counts(subject: Subject) -> Iterator[Finding]:
    """Compare the row count of every data file with that of its fragment."""
    fragments, files = subject.fragments, subject.snapshot.files
    steps = range(0, len(fragments), _FRAGMENTS_PER_TASK)
    tasks = tuple(
        CheckCounts(files=files, fragments=fragments[n : n + _FRAGMENTS_PER_TASK]) for n in steps
    )
    yield from run_tasks(subject, "row counts", tasks, None)
