"""Plan, run and commit a compaction, with retries after conflicts."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace

from lancelake import events, log
from lancelake.commit.snapshot import Snapshot
from lancelake.engine.port import Engine, Job, LocalEngine, Progress
from lancelake.errors import ContentionError
from lancelake.format.fragment import Fragment, from_bytes
from lancelake.maintenance.compact.compaction_commit import Rewritten, land
from lancelake.maintenance.compact.options import CompactionSettings
from lancelake.maintenance.compact.plan import FragmentGroup, RewritePlan, plan, table_settings
from lancelake.maintenance.compact.sorting import SortFragments
from lancelake.table.open import Latest, open_snapshot
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices

_MOST_ROUNDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionCounts:
    """Numbers of fragments and files removed and added; files include deletion files."""

    fragments_removed: int = 0
    fragments_added: int = 0
    files_removed: int = 0
    files_added: int = 0
    bytes_removed: int = 0
    bytes_added: int = 0

    @staticmethod
    def of(rewrites: Iterable[Rewritten]) -> CompactionCounts:
        """Count the fragments and files that rewrites remove and add."""
        every = tuple(rewrites)
        old = [fragment for rewrite in every for fragment in rewrite.old]
        new = [fragment for rewrite in every for fragment in rewrite.new]
        return CompactionCounts(
            fragments_removed=len(old),
            fragments_added=len(new),
            files_removed=_files(old),
            files_added=_files(new),
            bytes_removed=_bytes(old),
            bytes_added=_bytes(new),
        )

    def __add__(self, other: CompactionCounts) -> CompactionCounts:
        sums = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        return CompactionCounts(**sums)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """The newest version known, and the work done.

    `groups_left` are groups that other writers kept changing.
    """

    snapshot: Snapshot
    metrics: CompactionCounts = field(default_factory=CompactionCounts)
    groups_left: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRun:
    """The engine of a compaction, and how it is committed.

    With `groups_per_commit`, that many groups are committed at a time, and are kept if later ones
    fail.
    """

    engine: Engine | None = None
    choices: CommitChoices = DEFAULT_CHOICES
    progress: Progress | None = None
    groups_per_commit: int | None = None


def compact(
    base: Snapshot,
    options: CompactionSettings | None = None,
    run: CompactionRun | None = None,
) -> Compacted:
    """Rewrite fragments worth it and commit; without options, those in the table's config apply.

    Groups that other writers change in the meantime are planned and rewritten again; the others are
    committed.
    """
    events.emit(events.DATASET, event="compacting", uri=base.location.uri)
    running = run or CompactionRun()
    clock = base.location.session.clock
    running = replace(running, choices=running.choices.named("OPTIMIZE", base.location))
    with log.Operation(log.COMPACTION, _SENTENCE, base.location.uri, clock=clock) as operation:
        done = _compacted(base, options or table_settings(base), running)
        if done.metrics.fragments_removed:
            operation.facts |= {"version": done.snapshot.version, "operation": "OPTIMIZE"}
            operation.facts |= {**asdict(done.metrics), "groups_left": done.groups_left}
    return done


_SENTENCE = "compacted {table} into version {version}"


def _compacted(base: Snapshot, how: CompactionSettings, running: CompactionRun) -> Compacted:
    threads = how.num_threads
    engine = running.engine or base.location.session.engine
    engine = engine or (LocalEngine(parallelism=threads) if threads else LocalEngine())
    at, metrics = base, CompactionCounts()
    planned = plan(base, how, parallelism=engine.parallelism)
    for _ in range(_MOST_ROUNDS):
        at, landed, void = _round(at, planned, running, engine)
        metrics += CompactionCounts.of(landed)
        if not void:
            return Compacted(snapshot=at, metrics=metrics)
        at = open_snapshot(base.location, Latest(), main=base.main_location)
        planned = plan(at, _only(void, at, how), parallelism=engine.parallelism)
    if metrics.fragments_removed:
        return Compacted(snapshot=at, metrics=metrics, groups_left=len(planned.groups))
    raise ContentionError(
        f"every fragment was changed by other writers while it was rewritten, {_MOST_ROUNDS} times",
        table=base.location.uri,
    )


def rewritten(group: FragmentGroup, results: Iterable[bytes]) -> Rewritten:
    """Decode the output of the tasks of a group."""
    new = tuple(fragment for result in results for fragment in from_bytes(result))
    is_sorted = any(isinstance(task, SortFragments) for task in group.tasks)
    return Rewritten(old=group.fragments, new=new, is_sorted=is_sorted)


def _round(
    base: Snapshot, planned: RewritePlan, run: CompactionRun, engine: Engine
) -> tuple[Snapshot, list[Rewritten], list[Rewritten]]:
    """Run the tasks and commit; return the version, and the groups committed and not committed."""
    at = base
    landed: list[Rewritten] = []
    void: list[Rewritten] = []
    for group in _grouped(_results(base, planned, run, engine), run.groups_per_commit):
        moves = planned.options.defer_index_remap
        landing = land(base, group, run.choices, record_moves=moves)
        at = landing.snapshot
        landed += landing.landed
        void += landing.void
    return at, landed, void


def _results(
    base: Snapshot, planned: RewritePlan, run: CompactionRun, engine: Engine
) -> Iterator[Rewritten]:
    job = Job(
        description=f"compact {base.location.uri}", tasks=planned.tasks, progress=run.progress
    )
    waiting = deque(planned.groups)
    done: list[bytes] = []
    for result in engine.run(job):
        done.append(result)
        if len(done) == len(waiting[0].tasks):
            yield rewritten(waiting.popleft(), done)
            done = []


def _grouped(done: Iterable[Rewritten], size: int | None) -> Iterator[Sequence[Rewritten]]:
    group: list[Rewritten] = []
    for rewrite in done:
        group.append(rewrite)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group


def _only(
    void: Sequence[Rewritten], at: Snapshot, options: CompactionSettings
) -> CompactionSettings:
    """Return options that exclude all fragments except those whose rewrite was discarded."""
    again = {fragment.id for rewrite in void for fragment in rewrite.old}
    others = frozenset(f.id for f in at.manifest.fragments if f.id not in again)
    return replace(options, excluded_fragment_ids=options.excluded_fragment_ids | others)


def _files(fragments: Sequence[Fragment]) -> int:
    return sum(len(f.files) + (f.deletion_file is not None) for f in fragments)


def _bytes(fragments: Sequence[Fragment]) -> int:
    return sum(file.file_size_bytes or 0 for f in fragments for file in f.files)
