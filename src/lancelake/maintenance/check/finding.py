"""What a check looks at, and what it reports."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, asdict, dataclass
from enum import Enum
from functools import cached_property, partialmethod

from lancelake.commit.snapshot import Snapshot
from lancelake.engine.isolated import FragileTask, run_isolated
from lancelake.engine.port import Engine, Job, LocalEngine, Task
from lancelake.errors import LanceTableError, ObjectNotFoundError, StorageUnavailableError
from lancelake.format.fragment import DataFile, Fragment
from lancelake.format.ids import BaseId, FragmentId
from lancelake.format.schema import Schema
from lancelake.interrupts import pass_on
from lancelake.maintenance.reachable import FOLDERS
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt
from lancelake.threads import Pool


class Severity(Enum):
    """Severity of a finding.

    An error violates the format: rows are lost, wrong or unreadable for some reader. A warning
    works today but needs attention. An info is harmless.
    """

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """One violated rule; `code` is stable, the texts are not."""

    severity: Severity
    code: str
    message: str
    _: KW_ONLY
    version: int | None = None
    branch: str | None = None
    path: str | None = None
    hint: str | None = None
    fragment: int | None = None
    column: str | None = None
    """Top-level column of the fragment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The step that starts: what it checks, and how many of all steps are done."""

    step: str
    done: int
    total: int


OnProgress = Callable[[Progress], None]


def guarded(
    what: str,
    findings: Callable[[], Iterator[Finding]],
    *,
    version: int | None = None,
    branch: str | None = None,
) -> Iterator[Finding]:
    """Yield findings; an exception becomes a finding, unless the store is unreachable."""
    try:
        yield from findings()
    except StorageUnavailableError:
        raise
    except LanceTableError as error:
        message = f"{what} could not be checked: {error.problem}"
        # The advice of a class is to run this check.
        hint = None if error.next_step == error.action else error.next_step
        yield Finding(
            Severity.ERROR, "unchecked", message, version=version, branch=branch, hint=hint
        )
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001  # damage may surface as anything, even a panic
        pass_on(error)
        message = f"the check of {what} failed: {type(error).__name__}: {error}"
        hint = "The table is damaged in an unexpected way; please report it."
        yield Finding(
            Severity.ERROR, "check-failed", message, version=version, branch=branch, hint=hint
        )


# A file's size; None if it does not exist; an error if the store request failed.
FileSize = int | LanceTableError | None

_THREADS = 8
_MOST_HEADS = 64


class FileSizes:
    """Sizes by path; a folder is listed once many of its files are requested."""

    def __init__(self) -> None:
        """Start empty."""
        self._known: dict[FileAt, FileSize] = {}
        self._asked: Counter[tuple[Location, str]] = Counter()
        self._listed: set[tuple[Location, str]] = set()

    def load(self, places: Iterable[FileAt]) -> None:
        """Request the sizes of these files."""
        missing = [place for place in dict.fromkeys(places) if place not in self._known]
        self._asked.update(_folder(place) for place in missing)
        for folder, count in self._asked.items():
            if count > _MOST_HEADS and folder[1] in FOLDERS and folder not in self._listed:
                self._list(*folder)
        single = [place for place in missing if self._needs_head(place)]
        with Pool(_THREADS) as pool:
            self._known.update(zip(single, pool.map(_head, single), strict=True))

    def of(self, place: FileAt) -> FileSize:
        """Return the size of a file."""
        if place not in self._known and _folder(place) not in self._listed:
            self.load([place])
        return self._known.get(place)

    def _needs_head(self, place: FileAt) -> bool:
        return place not in self._known and _folder(place) not in self._listed

    def _list(self, root: Location, folder: str) -> None:
        for info in root.store.list(folder):
            self._known[FileAt(root=root, path=info.path)] = info.size_bytes
        self._listed.add((root, folder))


def _folder(place: FileAt) -> tuple[Location, str]:
    return place.root, place.path.partition("/")[0]


def _head(place: FileAt) -> FileSize:
    try:
        return place.store.head(place.path).size_bytes
    except ObjectNotFoundError:
        return None
    except StorageUnavailableError:
        raise
    except LanceTableError as error:
        return error


# Releases before this one wrote tables with known deviations that readers tolerate.
_FIRST_STRICT_RELEASE = (1, 0)


@dataclass(frozen=True)
class Subject:
    """A version to check."""

    snapshot: Snapshot
    sizes: FileSizes
    only: FragmentId | None = None
    """The fragment to check; None for all."""

    @cached_property
    def decoded(self) -> tuple[Fragment | LanceTableError, ...]:
        """Each fragment to check, or the error of decoding it."""
        every = tuple(self._fragment(i) for i in range(len(self.snapshot.manifest.fragments)))
        if self.only is None:
            return every
        return tuple(f for f in every if isinstance(f, Fragment) and f.id == self.only)

    @cached_property
    def fragments(self) -> tuple[Fragment, ...]:
        """The fragments that could be decoded."""
        return tuple(f for f in self.decoded if isinstance(f, Fragment))

    @cached_property
    def is_historic(self) -> bool:
        """Whether the writer is known for deviations that readers tolerate."""
        writer = self.snapshot.manifest.writer_version
        if writer is None:
            return True
        if writer.library != "lance" or not writer.release:
            return False
        return writer.release < _FIRST_STRICT_RELEASE

    @property
    def schema(self) -> Schema:
        """Schema of the version."""
        return self.snapshot.manifest.schema

    @property
    def strict(self) -> Severity:
        """Severity of violating a rule that historic writers violated."""
        return Severity.WARNING if self.is_historic else Severity.ERROR

    def has_base(self, base_id: BaseId | None) -> bool:
        """Whether a reference to this base can be resolved."""
        return base_id is None or self.snapshot.manifest.base_path(base_id) is not None

    def place(self, file: DataFile) -> FileAt | LanceTableError:
        """The location of a data file, or the error of resolving it."""
        try:
            return self.snapshot.files.data_file(file)
        except LanceTableError as error:
            return error

    def data_files(self) -> Iterator[tuple[Fragment, DataFile]]:
        """Yield each data file with its fragment."""
        for fragment in self.fragments:
            for file in fragment.files:
                yield fragment, file

    def finding(
        self,
        severity: Severity,
        code: str,
        message: str,
        *,
        path: str | None = None,
        hint: str | None = None,
    ) -> Finding:
        """Return a finding about this version."""
        version, branch = self.snapshot.version, self.snapshot.branch
        return Finding(
            severity, code, message, version=version, branch=branch, path=path, hint=hint
        )

    error = partialmethod(finding, Severity.ERROR)
    warning = partialmethod(finding, Severity.WARNING)
    info = partialmethod(finding, Severity.INFO)

    def _fragment(self, position: int) -> Fragment | LanceTableError:
        try:
            return self.snapshot.manifest.fragments[position]
        except LanceTableError as error:
            return error


def encode(found: Iterable[Finding]) -> bytes:
    """Encode the findings of a task, which knows the file but not the version."""
    return json.dumps([asdict(each) | {"severity": each.severity.value} for each in found]).encode()


def run_tasks(
    subject: Subject, what: str, tasks: tuple[Task, ...], engine: Engine | None
) -> Iterator[Finding]:
    """Run tasks, on threads of this process unless an engine is given, and yield their findings."""
    if tasks:
        description = f"check {what} of {subject.snapshot.location.uri}"
        job = Job(description=f"{description} version {subject.snapshot.version}", tasks=tasks)
        yield from _decoded(subject, (engine or LocalEngine()).run(job))


def run_fragile_tasks(
    subject: Subject, what: str, tasks: tuple[FragileTask, ...], engine: Engine | None
) -> Iterator[Finding]:
    """Run tasks that a damaged file may end, in child processes unless an engine is given."""
    # Another process does not see tables in memory.
    if engine is not None or subject.snapshot.location.scheme == "memory":
        yield from run_tasks(subject, what, tasks, engine)
    elif tasks:
        yield from _decoded(subject, run_isolated(tasks))


def _decoded(subject: Subject, results: Iterator[bytes]) -> Iterator[Finding]:
    snapshot = subject.snapshot
    for result in results:
        for each in json.loads(result):
            about = {"version": snapshot.version, "branch": snapshot.branch}
            yield Finding(**each | about | {"severity": Severity(each["severity"])})
