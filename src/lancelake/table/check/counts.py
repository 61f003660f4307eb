"""Compare the row counts of data files with the manifest, from file footers only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lancelake.data.open_columns import stored_rows
from lancelake.engine.port import Engine
from lancelake.errors import LanceTableError, StorageUnavailableError
from lancelake.format.fragment import Fragment
from lancelake.storage.table_files import TableFiles
from lancelake.table.check.finding import Finding
from lancelake.table.check.subject import Subject
from lancelake.table.check.task_findings import TaskFinding, encode, run_tasks

_FRAGMENTS_PER_TASK = 16
_TASK_BYTES = 16 << 20


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
                    f"the manifest says {fragment.physical_rows}"
                )
                yield TaskFinding(code="row-count", message=message, path=file.path)


def check_counts(subject: Subject, engine: Engine | None = None) -> Iterator[Finding]:
    """Compare the row count of every data file with that of its fragment."""
    fragments, files = subject.fragments, subject.snapshot.files
    steps = range(0, len(fragments), _FRAGMENTS_PER_TASK)
    tasks = tuple(
        CheckCounts(files=files, fragments=fragments[n : n + _FRAGMENTS_PER_TASK]) for n in steps
    )
    yield from run_tasks(subject, "row counts", tasks, engine)
