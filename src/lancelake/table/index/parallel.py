"""A segment built by the tasks of an engine: each indexes some fragments, and all are merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from pyroaring import BitMap

from lancelake.clock import SystemIds
from lancelake.data.codec.index_file import SegmentFolder
from lancelake.engine.port import Engine, Job
from lancelake.errors import LanceTableError, RetryableConflictError
from lancelake.format import index_meta, layout
from lancelake.format.ids import Version
from lancelake.format.index_meta import IndexMetadata
from lancelake.index.kind import (
    BuildInput,
    BuiltSegment,
    Parameters,
    SegmentFacts,
    TrainedKind,
)
from lancelake.index.registry import kind_named
from lancelake.scan.count import live_rows
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.storage.table_files import FileAt
from lancelake.table.index.build import SegmentBuild, built_here
from lancelake.table.index.build_record import BuildRecord, build_name
from lancelake.table.index.request import column_target
from lancelake.table.index.rows import build_input
from lancelake.table.open import AtVersion, open_snapshot

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
        unique = SystemIds().uuid4()
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
        if isinstance(target.kind, TrainedKind):
            args = base, target, build.fragments, build.stored
            rows = build_input(*args, parameters=build.parameters)
            build = replace(build, parameters=target.kind.trained(rows))
        parts = [replace(build, fragments=BitMap(group)) for group in groups]
        found = [_finished(part) for part in parts]
        known = {place: entry for place, entry in enumerate(found) if entry is not None}
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
    found = _record(build).read(_FINISHED)
    if found is None:
        return None
    (part,) = index_meta.decode_section(found)
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
    open_store(build.base.location).delete_many(
        f"{layout.index_dir(part.uuid)}/{file.path}" for part in made for file in part.files
    )
