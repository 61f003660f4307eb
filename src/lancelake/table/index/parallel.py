"""Building an index in parallel tasks that survive a crash.

A record is a folder beside those of segments, which has the name of what is built: the fragments
with their files and deletions, the column, the kind and its parameters. Attempts to build the same
find the same folder. No version refers to it: cleanup removes the records of
builds that were not resumed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from uuid import UUID, uuid5

import numpy as np
from pyroaring import BitMap

from lancelake.commit.snapshot import AtVersion, Snapshot, open_snapshot
from lancelake.data.codec.index_file import SegmentFolder
from lancelake.engine.port import Engine, Job
from lancelake.errors import LanceTableError, ObjectNotFoundError, RetryableConflictError
from lancelake.format import index_meta, layout
from lancelake.format.ids import Version
from lancelake.format.index_meta import IndexFile, IndexMetadata
from lancelake.index.kind import BuildInput, BuiltSegment, IdKind, Parameters, SegmentFacts
from lancelake.index.kinds import kind_named
from lancelake.scan.live_rows import live_rows
from lancelake.storage.location import Location
from lancelake.storage.store import create_once
from lancelake.storage.table_files import FileAt
from lancelake.table.index.build import SegmentBuild, built_here
from lancelake.table.index.request import IndexTarget, build_input, column_target
from lancelake.version import __version__

_NAMES = UUID("6f1d4b0e-58a3-4c6c-9d5e-2f0a7b7c41d2")
_CLAIM = "claimed"


def build_name(
    base: Snapshot,
    target: IndexTarget,
    fragments: Iterable[int],
    stored: IdKind,
    parameters: Parameters,
) -> UUID:
    """Return the name of what is built; equal names have equal rows."""
    wanted = set(fragments)
    facts = [
        __version__,
        repr(target.field_id),
        target.path,
        target.kind.name,
        str(target.dtype),
        repr(stored),
        json.dumps(dict(parameters), sort_keys=True, default=_shown),
        *(repr(fragment) for fragment in base.manifest.fragments if fragment.id in wanted),
    ]
    return uuid5(_NAMES, "\n".join(facts))


def _shown(value: object) -> str:
    # The text of a long array leaves out its middle.
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {sha256(value.tobytes()).hexdigest()}"
    return repr(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRecord:
    """A folder of index files or of notes about them, by the names of its files."""

    location: Location
    unique: UUID

    def read(self, name: str) -> bytes | None:
        """Return a file; None if there is none."""
        try:
            return self.location.store.get(self._path(name))
        except ObjectNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        """Write a file, replacing any other."""
        self.location.store.put(self._path(name), data)

    def names(self) -> list[str]:
        """Return the names of all files."""
        return self.location.store.list_names(layout.index_dir(self.unique))

    def remove(self, names: Iterable[str]) -> None:
        """Remove files."""
        self.location.store.delete_many([self._path(name) for name in names])

    def has(self, files: Iterable[IndexFile]) -> bool:
        """Whether all of these files exist and are complete."""
        store = self.location.store
        try:
            sizes = [(store.head(self._path(f.path)).size_bytes, f.size_bytes) for f in files]
        except ObjectNotFoundError:
            return False
        return all(size == wanted for size, wanted in sizes)

    def claim(self) -> bool:
        """Reserve the folder for one attempt, which completes the segment in it, and for ever."""
        return create_once(
            self.location.store, self._path(_CLAIM), self.location.session.ids.uuid4().bytes
        )

    @property
    def is_claimed(self) -> bool:
        """Whether an attempt has reserved the folder."""
        return self.read(_CLAIM) is not None

    def remove_others(self, files: Iterable[IndexFile]) -> None:
        """Remove what failed attempts left in the folder of a segment that has these files."""
        kept = {_CLAIM, *(file.path for file in files)}
        self.remove(name for name in self.names() if name not in kept)

    def _path(self, name: str) -> str:
        return f"{layout.index_dir(self.unique)}/{name}"


_TASK_BYTES = 512 << 20
_FINISHED = "finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFragments:
    """A part of a build: some fragments of a version, indexed into a folder of their own."""

    location: Location
    main: Location
    version: int
    column: str
    kind: str
    fragments: tuple[int, ...]
    parameters: Parameters

    @property
    def memory_bytes(self) -> int:
        """A sort within bounded memory, and what it reads ahead."""
        return _TASK_BYTES

    @staticmethod
    def of(build: SegmentBuild, fragments: tuple[int, ...]) -> IndexFragments:
        """Return the part of a build that indexes these fragments."""
        base, target = build.base, build.target
        return IndexFragments(
            location=base.location,
            main=base.main_location,
            version=base.version,
            column=target.path,
            kind=target.kind.name,
            fragments=fragments,
            parameters=dict(build.parameters),
        )

    def build(self) -> SegmentBuild:
        """Open the version again, and return what is to be built of it."""
        base = open_snapshot(self.location, AtVersion(self.version), main=self.main)
        return SegmentBuild(
            base=base,
            target=column_target(base, self.column, kind_named(self.kind)),
            fragments=BitMap(self.fragments),
            parameters=self.parameters,
        )

    def run(self) -> bytes:
        """Write the files and return the entry of the part."""
        build = self.build()
        # A task may run twice at once: each run has a folder of its own.
        unique = self.location.session.ids.uuid4()
        built = built_here(build, _folder(self.location, unique))
        entry = IndexMetadata(
            uuid=unique,
            name=self.column,
            fields=(build.target.field_id,),
            dataset_version=Version(self.version),
            details=built.details,
            index_version=built.index_version,
            files=built.files,
        )
        result = index_meta.encode_section((entry,))
        _record(build).write(_FINISHED, result)
        return result


@dataclass(frozen=True, slots=True)
class BuiltByTasks:
    """Builds a segment on an engine; parts that an earlier attempt finished are used again."""

    engine: Engine

    def __call__(self, build: SegmentBuild, folder: SegmentFolder) -> BuiltSegment:
        """Index groups of fragments at once, and merge what they made."""
        base, target = build.base, build.target
        groups = fragment_groups(build, self.engine.parallelism)
        if len(groups) <= 1:
            return built_here(build, folder)
        if target.kind.is_trained:
            args = base, target, build.fragments, build.stored
            rows = build_input(*args, parameters=build.parameters)
            build = replace(build, parameters=target.kind.train(rows))
        parts = [replace(build, fragments=BitMap(group)) for group in groups]
        finished = enumerate(_finished(part) for part in parts)
        known = {place: entry for place, entry in finished if entry is not None}
        missing = [place for place in range(len(parts)) if place not in known]
        tasks = [IndexFragments.of(build, groups[place]) for place in missing]
        job = Job(description=f"index {target.path} of {base.location.uri}", tasks=tasks)
        for place, result in zip(missing, self.engine.run(job), strict=True):
            (known[place],) = index_meta.decode_section(result)
        made = [known[place] for place in range(len(parts))]
        merged = _merged(build, made, folder)
        for part in parts:
            _record(part).remove([_FINISHED])
        _remove(build, made)
        return merged


def fragment_groups(build: SegmentBuild, count: int) -> list[tuple[int, ...]]:
    """Cut fragments, in order, into groups of about as many rows.

    Most groups stay the same when fragments are added, so that a build that is resumed on a later
    version finds the parts that were finished.
    """
    base = build.base
    rows = {
        f.id: live_rows(base.files, base.manifest_at, f)
        for f in base.manifest.fragments
        if f.id in build.fragments
    }
    share = -(-sum(rows.values()) // max(1, count))
    most = 1 << max(0, share.bit_length() - 1)
    groups: list[list[int]] = [[]]
    held = 0
    for fragment, size in rows.items():
        if groups[-1] and held + size > most:
            groups.append([])
            held = 0
        groups[-1].append(fragment)
        held += size
    return [tuple(group) for group in groups if group]


def _record(build: SegmentBuild) -> BuildRecord:
    base = build.base
    name = build_name(base, build.target, build.fragments, build.stored, build.parameters)
    return BuildRecord(location=base.location, unique=name)


def _finished(build: SegmentBuild) -> IndexMetadata | None:
    """Return the entry of a part that an earlier attempt finished; None if there is none."""
    section = _record(build).read(_FINISHED)
    if section is None:
        return None
    (part,) = index_meta.decode_section(section)
    is_complete = BuildRecord(location=build.base.location, unique=part.uuid).has(part.files)
    return part if is_complete else None


def _merged(
    build: SegmentBuild, made: Sequence[IndexMetadata], folder: SegmentFolder
) -> BuiltSegment:
    target = build.target
    nothing = BuildInput(dtype=target.dtype, batches=(), parameters=build.parameters)
    sources = [(_facts(build, part), None) for part in made]
    try:
        return target.kind.merge(sources, nothing, folder)
    except LanceTableError as error:
        location = build.base.location
        if all(BuildRecord(location=location, unique=part.uuid).has(part.files) for part in made):
            raise
        problem = "another writer has completed the same index build, and removed its parts"
        raise RetryableConflictError(problem, table=location.uri) from error


def _facts(build: SegmentBuild, part: IndexMetadata) -> SegmentFacts:
    return SegmentFacts(
        folder=_folder(build.base.location, part.uuid),
        dtype=build.target.dtype,
        details=part.details,
        index_version=part.index_version or 0,
    )


def _folder(location: Location, unique: UUID) -> SegmentFolder:
    return SegmentFolder(place=FileAt(root=location, path=layout.index_dir(unique)))


def _remove(build: SegmentBuild, made: Sequence[IndexMetadata]) -> None:
    """Remove files of parts, which no version will name."""
    build.base.location.store.delete_many(
        f"{layout.index_dir(part.uuid)}/{file.path}" for part in made for file in part.files
    )
