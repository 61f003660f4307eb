"""Files of a table that its versions need."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from lancelake.commit.external_store import ExternalHandler
from lancelake.commit.snapshot import branch_location, list_branches, list_tags, open_line
from lancelake.engine.port import Engine, Job, Progress
from lancelake.errors import LanceTableError, ObjectNotFoundError, UnsupportedError
from lancelake.format import layout
from lancelake.format.layout import ManifestNaming, manifest_name
from lancelake.format.manifest import (
    READABLE,
    WRITABLE,
    FileNames,
    VersionOutline,
    decode_outline,
    files_of_fragment,
    index_ids,
)
from lancelake.format.refs import Branch, Tag
from lancelake.storage.local import has_link
from lancelake.storage.location import Location
from lancelake.storage.store import ObjectStore
from lancelake.threads import Pool


class FileKind(StrEnum):
    """Purpose of a file."""

    MANIFEST = "manifest"
    TRANSACTION = "transaction"
    DATA = "data"
    BLOB = "blob"
    DELETION = "deletion"
    INDEX = "index"
    TEMPORARY = "temporary"
    UNKNOWN = "unknown"


FOLDERS = (layout.DATA, layout.DELETIONS, layout.INDICES, layout.TRANSACTIONS)
"""Folders of the files that versions refer to."""

_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_BLOB = re.compile(r"([^/]+)/[01]{32}\.blob")
_DELETION = re.compile(r"\d+-(\d+-\d+)\.(?:arrow|bin)")
_INDEX = re.compile(rf"({_UUID})/.+", re.DOTALL)
_TRANSACTION = re.compile(r"\d+-[^/]+\.txn")
_UNFINISHED = ".tmp"
# The codec writes a local file under such a temporary name, and renames it when it is complete.
_UNFINISHED_DATA = re.compile(r"\.tmp[0-9A-Za-z]{6}")
_DATA_SUFFIX = ".lance"


def classify(path: str) -> tuple[FileKind, str]:
    """Return the kind of a file in one of the folders, and the name that versions refer to it by.

    Names that no writer generates have no known kind. A deletion file is identified by the numbers
    in its name except the fragment id, since they are random.
    """
    folder, _, name = path.partition("/")
    match folder:
        case layout.DATA:
            return _data(name)
        case layout.DELETIONS:
            return _matched(_DELETION, name, FileKind.DELETION)
        case layout.INDICES:
            return _matched(_INDEX, name, FileKind.INDEX)
        case layout.TRANSACTIONS if _TRANSACTION.fullmatch(name):
            return FileKind.TRANSACTION, name
        case layout.VERSIONS if name.startswith(_UNFINISHED) and "/" not in name:
            return FileKind.TEMPORARY, name
        case _:
            return FileKind.UNKNOWN, name


def _data(name: str) -> tuple[FileKind, str]:
    if "/" not in name and name.endswith(_DATA_SUFFIX):
        return FileKind.DATA, name
    if _UNFINISHED_DATA.fullmatch(name):
        return FileKind.TEMPORARY, name
    blob = _BLOB.fullmatch(name)
    if blob is None:
        return FileKind.UNKNOWN, name
    # The blobs of a data file are stored in a folder of the same name.
    return FileKind.BLOB, blob[1] + _DATA_SUFFIX


def _matched(pattern: re.Pattern[str], name: str, kind: FileKind) -> tuple[FileKind, str]:
    found = pattern.fullmatch(name)
    return (FileKind.UNKNOWN, name) if found is None else (kind, found[1])


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
        found = self.location.store.list(self.folder)
        lines = (f"{info.size_bytes} {info.modified_ns} {info.path}" for info in found)
        return _SEPARATOR.join(lines).encode(errors=_ANY_BYTES)


def list_files(
    location: Location, engine: Engine, progress: Progress | None = None
) -> Iterator[ListedFile]:
    """Yield the files in the folders of a table, in the order of `FOLDERS`."""
    tasks = tuple(ListFolder(location=location, folder=folder) for folder in FOLDERS)
    job = Job(description=f"list files of {location.uri}", tasks=tasks, progress=progress)
    return _parse_listing(engine.run(job))


def _parse_listing(results: Iterable[bytes]) -> Iterator[ListedFile]:
    """Yield the files that runs of `ListFolder` returned."""
    for result in results:
        for line in result.decode(errors=_ANY_BYTES).split(_SEPARATOR) if result else ():
            size, modified, path = line.split(" ", 2)
            kind, known_as = classify(path)
            yield ListedFile(path, kind, known_as, int(size), int(modified))


_OWN = frozenset({*FOLDERS, layout.VERSIONS})
_MANIFEST = re.compile(r"d?\d{1,20}\.manifest")
# Depth of nested folders that are searched for clones.
_DEPTH = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachableLine:
    """The manifests below one root, by file name."""

    location: Location
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRefs:
    """The tags and branches of a table."""

    tags: Mapping[str, Tag]
    branches: Mapping[str, Branch]

    @staticmethod
    def load(main: Location) -> KnownRefs:
        """Read all tags and branches."""
        return KnownRefs(tags=list_tags(main), branches=list_branches(main))

    def tagged(self, branch: str | None) -> dict[str, int]:
        """Return the tags of a line and the versions they refer to."""
        return {
            tag: found.version for tag, found in self.tags.items() if _same(found.branch, branch)
        }

    def forks(self, branch: str | None) -> dict[str, int]:
        """Return the branches forked from a line, and the version of each fork."""
        return {
            name: found.parent_version
            for name, found in self.branches.items()
            if _same(found.parent_branch, branch)
        }

    def held(self, branch: str | None) -> frozenset[int]:
        """Return the versions of a line that a tag refers to or a branch was forked from."""
        return frozenset((*self.tagged(branch).values(), *self.forks(branch).values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A line of versions, and the others that may need its files."""

    own: ReachableLine
    others: tuple[ReachableLine, ...]
    refs: KnownRefs

    @staticmethod
    def load(location: Location, main: Location) -> Family:
        """Find all lines of the table at `main`; `location` may be a branch being created.

        Tags and branches are read before versions are listed, so that the versions they refer to
        are in the listing.
        """
        refs = KnownRefs.load(main)
        roots = {main.uri: main}
        roots |= {place.uri: place for place in (branch_location(main, b) for b in refs.branches)}
        roots |= {place.uri: place for place in _tables_within(main, _DEPTH)}
        roots.pop(location.uri, None)
        others = tuple(_line(root) for root in roots.values())
        return Family(own=_line(location), others=others, refs=refs)


def is_manifest(name: str) -> bool:
    """Whether a file in the versions folder has the name of a manifest."""
    return _MANIFEST.fullmatch(name) is not None


def _same(recorded: str | None, branch: str | None) -> bool:
    return (recorded or "main") == (branch or "main")


def _line(location: Location) -> ReachableLine:
    handler = open_line(location).handler
    if isinstance(handler, ExternalHandler):
        # A version recorded by the commit service is listed under its own name.
        handler.latest()
    names = location.store.list_names(layout.VERSIONS)
    return ReachableLine(location=location, names=tuple(filter(is_manifest, names)))


def _tables_within(root: Location, depth: int) -> Iterator[Location]:
    """Yield the roots of tables in folders that do not belong to the table itself."""
    for folder in _own_folders(root):
        if folder in _OWN or (folder.startswith("_") and folder != layout.TREE):
            continue
        yield from _tables_at(root.child(folder), depth - 1)


def _tables_at(place: Location, depth: int) -> Iterator[Location]:
    folders = _own_folders(place)
    if layout.VERSIONS in folders:
        yield place
    is_table = layout.VERSIONS in folders
    for folder in folders if depth else ():
        if not folder.startswith("_") and not (is_table and folder == layout.DATA):
            yield from _tables_at(place.child(folder), depth - 1)


def _own_folders(place: Location) -> list[str]:
    """Return the folders directly at a location; links are skipped."""
    folders = place.store.list_dirs("")
    if place.scheme != "file":
        return folders
    return [folder for folder in folders if not has_link(place.uri, folder)]


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
                outline = decode_outline(data)
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
        read = partial(_manifest, self.location.store)
        if self.location.scheme in _LOCAL:
            yield from filter(None, map(read, self.names))
            return
        with Pool(_REQUESTS) as pool:
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
    return _parse_reading(engine.run(Job(description=description, tasks=tasks, progress=progress)))


def parts(names: tuple[str, ...], engine: Engine) -> Iterator[tuple[str, ...]]:
    """Split versions into as many parts as are read in parallel."""
    size = max(_LEAST_VERSIONS, -(-len(names) // engine.parallelism))
    return (names[start : start + size] for start in range(0, len(names), size))


def _parse_reading(results: Iterable[bytes]) -> Reading:
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
