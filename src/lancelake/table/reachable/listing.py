"""List the files in the folders of a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from lancelake.engine.port import Engine, Job, Progress
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.table.reachable.file_kinds import FOLDERS, FileKind, classify

_TASK_BYTES = 64 << 20
# Other programs may store files here, and their names may contain any other character.
_SEPARATOR = "\0"
_ANY_BYTES = "surrogateescape"


# A tuple, since thousands are created: it takes a third of the time of a frozen dataclass.
class ListedFile(NamedTuple):
    """A file with its kind and the name that versions refer to it by."""

    path: str
    kind: FileKind
    known_as: str
    size_bytes: int
    modified_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListFolder:
    """A folder of a table to list."""

    location: Location
    folder: str

    @property
    def memory_bytes(self) -> int:
        """Estimated memory of a run."""
        return _TASK_BYTES

    def run(self) -> bytes:
        """List the folder and return the bytes that `list_files` reads."""
        found = open_store(self.location).list(self.folder)
        lines = (f"{info.size_bytes} {info.modified_ns} {info.path}" for info in found)
        return _SEPARATOR.join(lines).encode(errors=_ANY_BYTES)


def list_files(
    location: Location, engine: Engine, progress: Progress | None = None
) -> Iterator[ListedFile]:
    """Yield the files in the folders of a table, in the order of `FOLDERS`."""
    tasks = tuple(ListFolder(location=location, folder=folder) for folder in FOLDERS)
    job = Job(description=f"list files of {location.uri}", tasks=tasks, progress=progress)
    return _from_bytes(engine.run(job))


def _from_bytes(results: Iterable[bytes]) -> Iterator[ListedFile]:
    """Yield the files that runs of `ListFolder` returned."""
    for result in results:
        for line in result.decode(errors=_ANY_BYTES).split(_SEPARATOR) if result else ():
            size, modified, path = line.split(" ", 2)
            kind, known_as = classify(path)
            yield ListedFile(path, kind, known_as, int(size), int(modified))
