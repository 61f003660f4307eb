"""Read versions to find the files they need, and the versions that may be removed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from lancelake.engine.port import Engine, Job, Progress
from lancelake.errors import LanceTableError, ObjectNotFoundError, UnsupportedError
from lancelake.format import layout
from lancelake.format.flags import READABLE, WRITABLE
from lancelake.format.names import ManifestNaming, manifest_name
from lancelake.format.version_outline import (
    FileNames,
    VersionOutline,
    decode,
    files_of_fragment,
    index_ids,
)
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.storage.store import ObjectStore
from lancelake.table.reachable.file_kinds import FileKind
from lancelake.table.reachable.version_lines import ReachableLine

_TASK_BYTES = 64 << 20
_LEAST_VERSIONS = 250
# Number of manifests requested in parallel from a store with high latency.
_REQUESTS = 32
_LOCAL = {"file", "memory"}
_KNOWN_FLAGS = int(READABLE | WRITABLE)
_V1, _V2 = ManifestNaming.V1, ManifestNaming.V2


@dataclass(slots=True)
class Reach:
    """Names of the files that versions need, by kind."""

    data: set[str] = field(default_factory=set)
    deletions: set[str] = field(default_factory=set)
    indices: set[str] = field(default_factory=set)
    transactions: set[str] = field(default_factory=set)

    @property
    def is_empty(self) -> bool:
        """Whether no file is needed."""
        return not (self.data or self.deletions or self.indices or self.transactions)

    def add(self, names: FileNames) -> None:
        """Add names of files."""
        self.data.update(names.data)
        self.deletions.update(names.deletions)
        self.indices.update(names.indices)

    def update(self, other: Reach) -> None:
        """Add the files that other versions need."""
        self.data |= other.data
        self.deletions |= other.deletions
        self.indices |= other.indices
        self.transactions |= other.transactions

    def holds(self, kind: FileKind, known_as: str) -> bool:
        """Whether a file is needed."""
        return known_as in self.names(kind)

    def names(self, kind: FileKind) -> set[str]:
        """Return the names of the needed files of a kind."""
        match kind:
            case FileKind.DATA | FileKind.BLOB:
                return self.data
            case FileKind.DELETION:
                return self.deletions
            case FileKind.INDEX:
                return self.indices
            case FileKind.TRANSACTION:
                return self.transactions
            case _:
                return set()

    def settle(self) -> Reach:
        """Also register files by their last path segment, for bases that are a folder of files."""
        self.data |= {path.rpartition("/")[2] for path in self.data if "/" in path}
        return self

    def to_json(self) -> list[list[str]]:
        """Return the names as lists."""
        return [list(self.data), list(self.deletions), list(self.indices), list(self.transactions)]

    @staticmethod
    def from_json(body: Sequence[Iterable[str]]) -> Reach:
        """Decode the output of `to_json`."""
        return Reach(*(set(names) for names in body))


@dataclass(slots=True)
class _Gathering:
    """Collects the files that versions need; entries that versions share are decoded once."""

    reach: Reach = field(default_factory=Reach)
    _fragments: set[bytes] = field(default_factory=set)
    _sections: set[bytes] = field(default_factory=set)

    def add(self, outline: VersionOutline) -> None:
        fresh = set(outline.fragments).difference(self._fragments)
        self._fragments |= fresh
        for fragment in fresh:
            data, deletions = files_of_fragment(fragment)
            self.reach.data.update(data)
            self.reach.deletions.update(deletions)
        section = outline.index_section
        if section is not None and section not in self._sections:
            self._sections.add(section)
            self.reach.indices.update(index_ids(section))
        if outline.transaction_file:
            self.reach.transactions.add(outline.transaction_file)


# A tuple, since thousands are created: it takes a third of the time of a frozen dataclass.
class FoundVersion(NamedTuple):
    """A version as read from its manifest; `is_old` if its age and number allow its removal."""

    name: str
    version: int
    timestamp_ns: int | None
    size_bytes: int
    is_old: bool
    is_dropped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Result of reading versions: the files needed by kept and by dropped versions."""

    versions: tuple[FoundVersion, ...] = ()
    kept: Reach = field(default_factory=Reach)
    dropped: Reach = field(default_factory=Reach)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadVersions:
    """Versions of a line to read.

    `old` are those whose number allows their removal, `held` those that are retained for other
    reasons.
    """

    location: Location
    names: tuple[str, ...]
    old: frozenset[str] = frozenset()
    held: frozenset[str] = frozenset()
    before_ns: int | None = None

    @property
    def memory_bytes(self) -> int:
        """Estimated memory of a run."""
        return _TASK_BYTES

    def run(self) -> bytes:
        """Read the versions and return the bytes that `read_versions` merges.

        Versions that were removed in the meantime need nothing.
        """
        kept, dropped = _Gathering(), _Gathering()
        found: list[FoundVersion] = []
        for name, data in self._manifests():
            try:
                outline = decode(data)
                _ensure_known(outline)
                is_old = self._is_old(name, outline)
                is_dropped = is_old and name not in self.held
                (dropped if is_dropped else kept).add(outline)
            except LanceTableError as error:
                raise error.at(self.location.uri) from error.__cause__
            version, time = outline.version, outline.timestamp_ns
            found.append(FoundVersion(name, version, time, len(data), is_old, is_dropped))
        reaches = (kept.reach.to_json(), dropped.reach.to_json())
        return json.dumps((found, *reaches)).encode()

    def _is_old(self, name: str, outline: VersionOutline) -> bool:
        if name not in self.old or not self._is_early(outline.timestamp_ns):
            return False
        # If the version in a manifest differs from its name, the manifest takes precedence.
        number = outline.version
        return name == manifest_name(number, _V2) or name == manifest_name(number, _V1)

    def _is_early(self, timestamp_ns: int | None) -> bool:
        if self.before_ns is None:
            return True
        return timestamp_ns is not None and timestamp_ns < self.before_ns

    def _manifests(self) -> Iterator[tuple[str, bytes]]:
        read = partial(_manifest, open_store(self.location))
        if self.location.scheme in _LOCAL:
            yield from filter(None, map(read, self.names))
            return
        with ThreadPoolExecutor(_REQUESTS, thread_name_prefix="versions") as pool:
            yield from filter(None, pool.map(read, self.names))


def needed_by(
    lines: Iterable[ReachableLine], engine: Engine, progress: Progress | None = None
) -> Reach:
    """Return the files that all versions of the lines need."""
    tasks = tuple(
        ReadVersions(location=line.location, names=names)
        for line in lines
        for names in parts(line.names, engine)
    )
    return read_versions(tasks, engine, progress).kept


def read_versions(
    tasks: Sequence[ReadVersions], engine: Engine, progress: Progress | None = None
) -> Reading:
    """Read versions and merge the files they need."""
    if not tasks:
        return Reading()
    description = f"read versions of {tasks[0].location.uri}"
    return _from_bytes(engine.run(Job(description=description, tasks=tasks, progress=progress)))


def parts(names: tuple[str, ...], engine: Engine) -> Iterator[tuple[str, ...]]:
    """Split versions into as many parts as are read in parallel."""
    size = max(_LEAST_VERSIONS, -(-len(names) // engine.parallelism))
    return (names[start : start + size] for start in range(0, len(names), size))


def _from_bytes(results: Iterable[bytes]) -> Reading:
    """Merge the results of runs of `ReadVersions`."""
    versions: list[FoundVersion] = []
    kept, dropped = Reach(), Reach()
    for result in results:
        found, *reaches = json.loads(result)
        versions += map(FoundVersion._make, found)
        kept.update(Reach.from_json(reaches[0]))
        dropped.update(Reach.from_json(reaches[1]))
    return Reading(versions=tuple(versions), kept=kept.settle(), dropped=dropped.settle())


def _manifest(store: ObjectStore, name: str) -> tuple[str, bytes] | None:
    try:
        return name, store.get(layout.manifest(name))
    except ObjectNotFoundError:
        return None


def _ensure_known(outline: VersionOutline) -> None:
    """Refuse unknown features, since their files would not be found."""
    flags = outline.reader_feature_flags | outline.writer_feature_flags
    if unknown := flags & ~_KNOWN_FLAGS:
        raise UnsupportedError(
            f"the table has unsupported features (flags {unknown:#x}), so the files they need "
            "are unknown",
            version=outline.version,
            flags=unknown,
        )
