"""A segment of an index: its files written, its entry ready to be committed."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.data.codec.index_file import SegmentFolder
from lancelake.engine.port import JobProgress, Progress
from lancelake.engine.stages import Stages
from lancelake.format import layout
from lancelake.format.ids import Version
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.operations import CreateIndex
from lancelake.index.kind import BuiltSegment, IdKind, Parameters, TrainedKind
from lancelake.index.text.kind import INVERTED
from lancelake.scan.count import live_rows
from lancelake.storage.table_files import FileAt
from lancelake.table.conflict_retry import Retries, racing, until_it_lands
from lancelake.table.index.request import (
    IndexRequest,
    IndexTarget,
    chosen_fragments,
    chosen_name,
    replaced_entries,
    resolve,
)
from lancelake.table.index.rows import RowsRead, build_input
from lancelake.table.publish import (
    DEFAULT_CHOICES,
    CommitChoices,
    Surroundings,
    new_transaction,
    publish,
)

BUILD_RETRIES = Retries(most=10, timeout_s=24 * 3600.0, longest_wait_s=30.0)
"""A build is repeated when a compaction moved the rows that it had read."""
_LOAD = "load_data"


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentBuild:
    """A segment to be built: a column, the fragments, and the parameters of the kind."""

    base: Snapshot
    target: IndexTarget
    fragments: BitMap
    parameters: Parameters
    on_rows: RowsRead | None = None
    stages: Stages = field(default_factory=Stages)

    @property
    def stored(self) -> IdKind:
        """What the segment stores for a row."""
        is_stable = self.base.manifest.has_stable_row_ids
        return self.target.kind.stored_ids(0, has_stable_row_ids=is_stable)


def built_here(build: SegmentBuild, folder: SegmentFolder) -> BuiltSegment:
    """Write the files of a segment in this process, within bounded memory."""
    rows = build_input(
        build.base,
        build.target,
        build.fragments,
        build.stored,
        parameters=build.parameters,
        on_rows=build.on_rows,
        stages=build.stages,
    )
    return build.target.kind.build(rows, folder)


Builder = Callable[[SegmentBuild, SegmentFolder], BuiltSegment]
"""Writes the files of a segment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRun:
    """How an index is built and committed."""

    choices: CommitChoices = DEFAULT_CHOICES
    retries: Retries = BUILD_RETRIES
    progress: Progress | None = None
    builder: Builder = built_here
    begun: Callable[[SegmentBuild], uuid.UUID | None] | None = None
    """Returns the folder in which an earlier attempt has begun the same segment."""
    merged_rows: int | None = None
    """Most rows of segments that are merged in this process; more are built by `builder`."""


DEFAULT_RUN = IndexRun()


def create_index(base: Snapshot, request: IndexRequest, run: IndexRun = DEFAULT_RUN) -> Snapshot:
    """Build an index of the newest rows of a table and commit it."""

    def work(version: Snapshot) -> Snapshot:
        target = resolve(version, request)
        name = chosen_name(version, request, target)
        replaced = replaced_entries(version, name, target, replace=request.replace)
        entry = build_segment(version, request, run)
        operation = CreateIndex(new_indices=(entry,), removed_indices=replaced)
        choices = racing(run.choices, run.retries)
        return publish(version, new_transaction(operation, version.version, choices), choices)

    return until_it_lands(base, work, run.retries, run.choices.surroundings)


def build_segment(
    base: Snapshot,
    request: IndexRequest,
    run: IndexRun = DEFAULT_RUN,
    *,
    unique: uuid.UUID | None = None,
) -> IndexMetadata:
    """Build one segment over the fragments that a request names, and return its entry.

    Nothing is committed.
    """
    target = resolve(base, request)
    name = chosen_name(base, request, target)
    covered = chosen_fragments(base, request.fragment_ids) if request.train else BitMap()
    return _built(base, name, target, covered, request.parameters, run=run, unique=unique)


def rebuilt(
    base: Snapshot,
    name: str,
    target: IndexTarget,
    fragments: BitMap,
    parameters: Parameters,
    run: IndexRun,
) -> IndexMetadata:
    """Build a segment of the rows of fragments that takes the place of existing segments."""
    return _built(base, name, target, fragments, parameters, run=run)


def _built(
    base: Snapshot,
    name: str,
    target: IndexTarget,
    covered: BitMap,
    parameters: Parameters,
    *,
    run: IndexRun,
    unique: uuid.UUID | None = None,
) -> IndexMetadata:
    description = f"index {target.path}"
    in_stages = _has_stages(target) and run.builder is built_here
    rows_progress = None if in_stages else run.progress
    build = SegmentBuild(
        base=base,
        target=target,
        fragments=covered,
        parameters=parameters,
        on_rows=row_counter(base, description, covered, rows_progress),
        stages=Stages(description, run.progress if in_stages else None),
    )
    if unique is None and run.begun is not None:
        unique = run.begun(build)
    place = new_place(base, run.choices.surroundings, unique)
    built = run.builder(build, place.folder)
    return place.entry(base, name, target, built, covered)


def _has_stages(target: IndexTarget) -> bool:
    """Whether a kind reports the stages of a build; of others the rows read are counted."""
    return target.kind is INVERTED or isinstance(target.kind, TrainedKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentPlace:
    """The folder of a new segment."""

    unique: uuid.UUID
    folder: SegmentFolder
    created_at_ms: int

    def entry(
        self,
        base: Snapshot,
        name: str,
        target: IndexTarget,
        built: BuiltSegment,
        covered: BitMap,
    ) -> IndexMetadata:
        """Return the entry of a segment that was built here from a version."""
        compact = BitMap(covered)
        compact.run_optimize()
        return IndexMetadata(
            uuid=self.unique,
            name=name,
            fields=(target.field_id,),
            dataset_version=Version(base.version),
            fragment_bitmap=bytes(compact.serialize()),
            details=built.details,
            index_version=built.index_version,
            created_at_ms=self.created_at_ms,
            files=built.files,
        )


def new_place(
    base: Snapshot, surroundings: Surroundings, unique: uuid.UUID | None = None
) -> SegmentPlace:
    """Return the folder for a new segment."""
    chosen = unique or surroundings.ids.uuid4()
    place = FileAt(root=base.location, path=layout.index_dir(chosen))
    return SegmentPlace(
        unique=chosen,
        folder=SegmentFolder(place=place),
        created_at_ms=surroundings.clock.now_ns() // 1_000_000,
    )


def row_counter(
    base: Snapshot, description: str, fragments: BitMap, progress: Progress | None
) -> RowsRead | None:
    """Return a function that reports how many of the rows of fragments were read."""
    if progress is None:
        return None
    places = base.files, base.manifest_at
    chosen = (f for f in base.manifest.fragments if f.id in fragments)
    total, done = sum(live_rows(*places, f) for f in chosen), 0
    report: Callable[[JobProgress], None] = progress
    report(JobProgress(description=description, done=0, total=total, stage=_LOAD))

    def count(rows: int) -> None:
        nonlocal done
        done += rows
        report(JobProgress(description=description, done=done, total=total, stage=_LOAD))

    return count


def with_oldest_version(entry: IndexMetadata, inputs: tuple[IndexMetadata, ...]) -> IndexMetadata:
    """Return the entry of a merged segment: it is as old as the oldest of its inputs."""
    oldest = min((i.dataset_version for i in inputs), default=entry.dataset_version)
    return replace(entry, dataset_version=min(oldest, entry.dataset_version))
