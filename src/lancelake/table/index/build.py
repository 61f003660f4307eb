"""Building and dropping indices, and their statistics.

Which of them a kind has is decided, with its defaults, by the kind itself.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, TypedDict
from uuid import UUID

from pyroaring import BitMap

from lancelake import log
from lancelake.commit.snapshot import Snapshot
from lancelake.data.codec.index_file import SegmentFolder
from lancelake.engine.port import JobProgress, Progress, Stages
from lancelake.errors import IndexNotFoundError
from lancelake.format import index_meta, layout
from lancelake.format.ids import Version
from lancelake.format.index_meta import FRAGMENT_REUSE, IndexMetadata
from lancelake.format.operations import CreateIndex
from lancelake.index.kind import BuildInput, BuiltSegment, IdKind, Parameters, indexed_type
from lancelake.index.moved_rows import with_inline_moves
from lancelake.index.stored_segment import StoredIndices
from lancelake.scan.live_rows import live_rows
from lancelake.storage.table_files import FileAt
from lancelake.table import publish
from lancelake.table.index.request import (
    IndexRequest,
    IndexTarget,
    RowsRead,
    build_input,
    chosen_fragments,
    chosen_name,
    entries_named,
    replaced_entries,
    resolve,
    stored_ids,
)
from lancelake.txn.fragments import follow_moves

BUILD_RETRIES = publish.Retries(most=10, timeout_s=24 * 3600.0, longest_wait_s=30.0)
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
        return stored_ids(self.base, self.target.kind)


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

    choices: publish.CommitChoices = publish.DEFAULT_CHOICES
    retries: publish.Retries = BUILD_RETRIES
    progress: Progress | None = None
    builder: Builder = built_here
    begun: Callable[[SegmentBuild], uuid.UUID | None] | None = None
    """Returns the folder in which an earlier attempt has begun the same segment."""
    merged_rows: int | None = None
    """Most rows of segments that are merged in this process; more are built by `builder`."""


DEFAULT_RUN = IndexRun()


def create_index(base: Snapshot, request: IndexRequest, run: IndexRun = DEFAULT_RUN) -> Snapshot:
    """Build an index of the newest rows of a table and commit it."""
    chosen = run.choices.named("CREATE INDEX", base.location)

    def work(version: Snapshot) -> Snapshot:
        target = resolve(version, request)
        name = chosen_name(version, request, target)
        replaced = replaced_entries(version, name, target, replace=request.replace)
        entry = build_segment(version, request, run)
        operation = CreateIndex(new_indices=(entry,), removed_indices=replaced)
        choices = chosen.within(run.retries)
        made = publish.publish(version, operation, choices)
        if build.is_heard:
            build.facts |= index_facts(made, "CREATE INDEX", (entry,))
        return made

    with indexing(base) as build:
        return publish.retry_on_newest(base, work, run.retries)


def indexing(base: Snapshot) -> log.Operation:
    """Return the record of work on indices."""
    sentence = "wrote index {index} in version {version} of {table}"
    clock = base.location.session.clock
    return log.Operation(log.INDEX, sentence, base.location.uri, clock=clock)


def index_facts(made: Snapshot, name: str, entries: Sequence[IndexMetadata]) -> log.Facts:
    """Return what is recorded about segments that an operation of this name added."""
    covered = BitMap.union(BitMap(), *(entry.fragments() or BitMap() for entry in entries))
    sizes = [file.size_bytes for entry in entries for file in entry.files]
    return {
        "version": made.version,
        "operation": name,
        "index": ", ".join(entry.name for entry in entries),
        "rows_covered": sum(f.live_rows or 0 for f in made.manifest.fragments if f.id in covered),
        "files_added": len(sizes),
        "bytes_added": sum(sizes),
    }


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
    in_stages = target.kind.has_stages and run.builder is built_here
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
    place = new_place(base, unique)
    if target.kind.is_trained and not _has_rows(base, covered):
        rows = BuildInput(dtype=target.dtype, batches=(), parameters=parameters)
        return place.entry(base, name, target, target.kind.untrained(rows), BitMap())
    built = run.builder(build, place.folder)
    return place.entry(base, name, target, built, covered)


def _has_rows(base: Snapshot, fragments: BitMap) -> bool:
    places = base.files, base.manifest_at
    chosen = (f for f in base.manifest.fragments if f.id in fragments)
    return any(live_rows(*places, fragment) for fragment in chosen)


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


def new_place(base: Snapshot, unique: uuid.UUID | None = None) -> SegmentPlace:
    """Return the folder for a new segment."""
    session = base.location.session
    unique = unique or session.ids.uuid4()
    place = FileAt(root=base.location, path=layout.index_dir(unique))
    return SegmentPlace(
        unique=unique,
        folder=SegmentFolder(place=place),
        created_at_ms=session.clock.now_ns() // 1_000_000,
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


ScalarKind: TypeAlias = Literal[
    "BTREE", "BITMAP", "LABEL_LIST", "ZONEMAP", "BLOOMFILTER", "NGRAM", "INVERTED", "FTS"
]
VectorKind: TypeAlias = Literal[
    "IVF_FLAT", "IVF_SQ", "IVF_PQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ", "IVF_HNSW_PQ"
]
Metric: TypeAlias = Literal[
    "L2", "l2", "euclidean", "cosine", "Cosine", "dot", "Dot", "hamming", "Hamming"
]


class ScalarParameters(TypedDict, total=False):
    """Parameters of BTREE, ZONEMAP, BLOOMFILTER and INVERTED indices."""

    zone_size: int
    rows_per_zone: int
    number_of_items: int
    probability: float
    base_tokenizer: Literal["simple", "whitespace", "raw", "ngram", "code", "icu"] | str
    language: str
    with_position: bool
    max_token_length: int | None
    lower_case: bool
    stem: bool
    remove_stop_words: bool
    custom_stop_words: list[str] | None
    ascii_folding: bool
    min_ngram_length: int
    max_ngram_length: int
    prefix_only: bool
    split_identifiers: bool
    split_on_numerics: bool
    preserve_original: bool
    memory_limit: int
    worker_memory_limit_mb: int
    num_workers: int
    skip_merge: bool


class VectorParameters(TypedDict, total=False):
    """Parameters of vector indices that are not arguments of `create_index`."""

    num_bits: int
    sample_rate: int
    max_iters: int
    m: int
    ef_construction: int
    max_level: int
    index_file_version: str


class IndexParameters(ScalarParameters, VectorParameters, total=False):
    """Parameters of indices of any kind."""


class TableIndexParameters(IndexParameters, total=False):
    """Parameters of indices of any kind, those of vector indices in full."""

    metric_type: Metric | str
    num_partitions: int
    num_sub_vectors: int
    target_partition_size: int
    accelerator: str
    skip_transpose: bool


def trained_parameters(base: Snapshot, request: IndexRequest) -> Parameters:
    """Train on a sample of rows; builds with the parameters returned have the same model."""
    target = resolve(base, request)
    fragments = chosen_fragments(base, request.fragment_ids)
    stored = stored_ids(base, target.kind)
    rows = build_input(base, target, fragments, stored, parameters=request.parameters)
    return target.kind.train(rows)


def prewarm(base: Snapshot, name: str, only: Collection[UUID] | None = None) -> None:
    """Load what searches keep of an index, or of some of its segments."""
    known = {entry.uuid for entry in entries_named(base, name)}
    missing = sorted(map(str, set(only or ()) - known))
    if missing:
        problem = f"index {name!r} has no segment {missing[0]}"
        raise IndexNotFoundError(problem, table=base.location.uri, version=base.version)
    for segment in StoredIndices(base).segments(name):
        if only is None or segment.entry.uuid in only:
            segment.open().prewarm()


def drop_index(
    base: Snapshot,
    name: str,
    *,
    choices: publish.CommitChoices = publish.DEFAULT_CHOICES,
    retries: publish.Retries = publish.DEFAULT,
) -> Snapshot:
    """Drop all segments of an index; raise IndexNotFoundError if there are none."""

    def work(version: Snapshot) -> Snapshot:
        try:
            removed = entries_named(version, name)
        except IndexNotFoundError as error:
            problem = f"index not found: {error.problem}"
            raise IndexNotFoundError(problem, table=error.table, version=error.version) from None
        operation = CreateIndex(new_indices=(), removed_indices=removed)
        return publish.publish(version, operation, choices)

    return publish.retry_on_newest(base, work, retries)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexCoverage:
    """How much of a version an index covers."""

    name: str
    kind: str
    column: str
    segments: int
    fragments: int
    rows: int
    rows_per_segment: tuple[int, ...]
    unindexed_fragments: int
    unindexed_rows: int
    size_bytes: int | None
    created_at_ms: int | None

    @property
    def share(self) -> float:
        """The share of the rows that are covered; 1 in a table without rows."""
        total = self.rows + self.unindexed_rows
        return self.rows / total if total else 1.0


def current_coverage(base: Snapshot) -> dict[UUID, set[int]]:
    """Return the fragments that segments cover where recorded moves changed them."""
    if not any(entry.name == FRAGMENT_REUSE for entry in base.indices):
        return {}
    followed = follow_moves(with_inline_moves(base))
    return {entry.uuid: set(entry.fragments() or ()) for entry in followed}


def coverage_of(base: Snapshot) -> tuple[IndexCoverage, ...]:
    """Return the coverage of all indices of a version, by name."""
    names = sorted({entry.name for entry in base.indices if not entry.is_system})
    counts = _Counts(base) if names else None
    return tuple(counts.of(entries_named(base, name)) for name in names) if counts else ()


def coverage_named(base: Snapshot, name: str) -> IndexCoverage:
    """Return the coverage of an index; raise IndexNotFoundError if there is none."""
    return _Counts(base).of(entries_named(base, name))


def segment_statistics(base: Snapshot, name: str) -> list[Mapping[str, Any]] | None:
    """Return the numbers that official releases show for each segment.

    None for a kind that is not known. The files of the segments are opened.
    """
    stored = StoredIndices(base)
    statistics = []
    for entry in entries_named(base, name):
        field = base.manifest.schema.by_id().get(entry.fields[0]) if entry.fields else None
        kind = None if field is None else stored.kind(entry, indexed_type(field))
        if kind is None or field is None:
            return None
        statistics.append(kind.open(stored.facts(entry, indexed_type(field))).statistics())
    return statistics


class _Counts:
    """The live rows of each fragment, and what segments cover of them."""

    def __init__(self, base: Snapshot) -> None:
        places = base.files, base.manifest_at
        self._rows: dict[int, int] = {f.id: live_rows(*places, f) for f in base.manifest.fragments}
        self._schema = base.manifest.schema
        self._stored = StoredIndices(base)
        self._moved = current_coverage(base)

    def _kind(self, entry: IndexMetadata) -> str:
        """Return the shown kind; that of an entry without details is read from its files."""
        field = self._schema.by_id().get(entry.fields[0]) if entry.fields else None
        if entry.details is not None or field is None:
            return index_meta.describe(entry.details)[0] or index_meta.UNKNOWN
        kind = self._stored.kind(entry, indexed_type(field))
        return index_meta.UNKNOWN if kind is None else index_meta.shown(kind.details_type)

    def of(self, entries: Sequence[IndexMetadata]) -> IndexCoverage:
        per_segment = [self._covered(entry) for entry in entries]
        covered = BitMap.union(BitMap(), *per_segment)
        rows = self._count(covered)
        first = entries[0]
        kind = self._kind(first)
        sizes = [sum(f.size_bytes for f in e.files) for e in entries if e.files]
        times = [e.created_at_ms for e in entries if e.created_at_ms is not None]
        return IndexCoverage(
            name=first.name,
            kind=kind,
            column=", ".join(self._schema.path_of(i) or str(i) for i in first.fields),
            segments=len(entries),
            fragments=len(covered),
            rows=rows,
            rows_per_segment=tuple(self._count(each) for each in per_segment),
            unindexed_fragments=len(self._rows) - len(covered),
            unindexed_rows=sum(self._rows.values()) - rows,
            size_bytes=sum(sizes) if len(sizes) == len(entries) else None,
            created_at_ms=max(times, default=None),
        )

    def _covered(self, entry: IndexMetadata) -> BitMap:
        named = self._moved.get(entry.uuid, entry.fragments() or ())
        return BitMap(i for i in named if i in self._rows)

    def _count(self, fragments: BitMap) -> int:
        return sum(self._rows[i] for i in fragments)
