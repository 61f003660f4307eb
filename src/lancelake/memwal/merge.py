"""Merge of generations into the table."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Self, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancelake import errors, log
from lancelake.commit.snapshot import Latest, Snapshot, open_snapshot
from lancelake.data.column_file import WriteTask
from lancelake.engine import port
from lancelake.engine.port import Engine, Job, LocalEngine
from lancelake.format import frozen, index_meta, row_address, schema
from lancelake.memwal import view as views
from lancelake.memwal.collect import collect_garbage
from lancelake.memwal.region import details_of, has_mem_wal
from lancelake.memwal.shape import TOMBSTONE, RowShape
from lancelake.scan.plan import ScanTask
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.storage.store import ObjectStore
from lancelake.table import publish
from lancelake.table.merge import clauses, match
from lancelake.table.merge.run import change_of, plan_merge
from lancelake.table.merge.source import SourceRows, key_fields, read_source
from lancelake.table.merge.write import (
    TASK_BYTES,
    KeyColumns,
    WritePortions,
    WrittenRows,
    added_rows,
)
from lancelake.table.operation_record import RowCounts
from lancelake.table.row_steps import AddedRows, RowChange, commit_rows, divided, row_files
from lancelake.threads import aside, driven_aside

_ROWS_PER_TASK = 250_000
_KEYS_AT_ONCE = 8 << 20
_BATCH_ROWS = 1 << 17
_PLACE_MASK = (1 << views.PLACE_BITS) - 1


def _change_by_tasks(base: Snapshot, view: views.PinnedView, engine: Engine) -> RowChange:
    """Return the change of a merge whose rows the tasks of an engine read and write."""
    pairs = _match(base, view, engine)

    def add() -> AddedRows:
        parts = _write(base, view, pairs, engine)
        key = KeyColumns.of(base.manifest.schema.primary_key())
        deleted = len(pairs) - sum(part.updated for part in parts)
        return added_rows(parts, key, deleted=deleted)

    return RowChange(gone=row_address.by_fragment(pairs.target), add=add)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchRegions:
    """Finds the rows of some fragments whose keys the regions have."""

    view: views.PinnedView
    scans: tuple[ScanTask, ...]

    @property
    def memory_bytes(self) -> int:
        """Estimate of the memory that a run takes."""
        return TASK_BYTES

    def run(self) -> bytes:
        """Return the numbers of rows of the regions, and the addresses of the table's rows."""
        view = self.view.opened()
        keys = view.numbered_keys
        fields = key_fields(view.shape.keys, view.base.manifest.schema)
        scans = tuple(match.with_keys(view.base, fields, keys, self.scans))
        if not scans:
            return port.dumps([])
        matches = [
            match.MatchKeys(scans=scans, fields=fields, keys=part, are_unique=keys.are_unique).run()
            for part in keys.parts(_KEYS_AT_ONCE)
        ]
        return port.dumps(matches)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRegions:
    """Writes the newest rows of some regions to new files."""

    view: views.PinnedView
    places: tuple[int, ...]
    """Positions of the regions in the view."""
    pairs: match.Pairs
    """Rows of these regions that replace or delete rows of the table, by number."""
    write: WriteTask

    @property
    def memory_bytes(self) -> int:
        """Estimate of the memory that a run takes."""
        return TASK_BYTES

    def run(self) -> bytes:
        """Write the rows and return `WrittenRows` as a message."""
        view = self.view.opened()
        with _read_rows(view, self.places) as (rows, firsts):
            first = np.array([firsts[place] for place in self.places], dtype=np.int64)
            places = np.searchsorted(self.places, self.pairs.source >> views.PLACE_BITS)
            numbers = first[places] + (self.pairs.source & _PLACE_MASK)
            pairs = replace(self.pairs, source=numbers)
            # That no key is in two regions is checked where keys are matched.
            source, spec = _with_spec(view.shape, rows, clauses.Duplicates.INSERT_ALL)
            merge = plan_merge(view.base, source, spec, LocalEngine(), pairs=pairs)
            return WritePortions(portions=merge.portions, write=self.write, key=merge.key).run()


@contextmanager
def _read_rows(
    view: views.MemWalView, places: Sequence[int]
) -> Iterator[tuple[SourceRows, dict[int, int]]]:
    """Read the newest rows of regions; also return the number of the first row of each."""
    firsts: dict[int, int] = {}

    def newest() -> Iterator[pa.RecordBatch]:
        count = 0
        for place in places:
            firsts[place] = count
            for batch in view.unmerged(view.regions[place], views.SeenKeys(view.shape)):
                count += batch.num_rows
                if batch.num_rows:
                    yield batch

    with read_source(pa.RecordBatchReader.from_batches(view.shape.arrow, newest())) as rows:
        yield rows, firsts


def _with_spec(
    shape: RowShape, rows: SourceRows, duplicates: clauses.Duplicates
) -> tuple[SourceRows, clauses.MergeSpec]:
    """Delete the rows of tombstones; replace or insert all others."""
    if not pc.any(rows.columns([TOMBSTONE]).column(0)).as_py():
        # Without tombstones nothing has to be decided row by row.
        spec = clauses.MergeSpec(
            on=shape.keys,
            matched=(clauses.UpdateAll(),),
            not_matched=(clauses.InsertAll(),),
            duplicates=duplicates,
        )
        return rows.without(TOMBSTONE), spec
    deleted = f"source.{schema.quoted_name(TOMBSTONE)}"
    values = frozen.FrozenMap({n: f"source.{schema.quoted_name(n)}" for n in shape.table.names})
    spec = clauses.MergeSpec(
        on=shape.keys,
        matched=(clauses.DeleteRow(condition=deleted), clauses.UpdateSet(values=values)),
        not_matched=(clauses.InsertValues(values=values, condition=f"NOT {deleted}"),),
        duplicates=duplicates,
    )
    return rows, spec


def _match(base: Snapshot, view: views.PinnedView, engine: Engine) -> match.Pairs:
    names = RowShape.of(base).keys
    request = ScanRequest(
        columns=names, with_row_address=True, batch_size=_BATCH_ROWS, remembers_small=True
    )
    count = engine.parallelism
    groups = match.balance_scans(divided(plan(base, request).tasks, count), count)
    tasks = [MatchRegions(view=view, scans=group) for group in groups]
    job = Job(description=f"match keys of {base.location.uri}", tasks=tasks)
    return match.read_pairs(part for result in engine.run(job) for part in port.loads(result))


def _write(
    base: Snapshot, view: views.PinnedView, pairs: match.Pairs, engine: Engine
) -> list[WrittenRows]:
    tasks = [
        WriteRegions(
            view=view,
            places=places,
            pairs=pairs.where(np.isin(pairs.source >> views.PLACE_BITS, places)),
            write=row_files(base),
        )
        for places in _groups(view, engine.parallelism)
    ]
    job = Job(description=f"write rows of {base.location.uri}", tasks=tasks)
    return [cast("WrittenRows", port.loads(result)) for result in engine.run(job)]


def _groups(view: views.PinnedView, parallelism: int) -> list[tuple[int, ...]]:
    """Distribute regions over tasks; few rows are written by one, so that files are not small."""
    sizes = [
        sum(generation.physical_rows or _ROWS_PER_TASK for generation in region.generations)
        for region in view.regions
    ]
    count = max(1, min(parallelism, -(-sum(sizes) // _ROWS_PER_TASK)))
    largest_first = sorted(range(len(sizes)), key=lambda place: -sizes[place])
    groups = match.balance(largest_first, count, lambda place: sizes[place])
    return [tuple(sorted(group)) for group in groups]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedRegions:
    """The version after a merge, the generations that it merged, and how many rows changed."""

    snapshot: Snapshot
    marks: tuple[index_meta.MergedGeneration, ...]
    counts: RowCounts


def merge_generations(
    base: Snapshot,
    regions: Sequence[uuid.UUID] | None = None,
    *,
    engine: Engine | None = None,
    choices: publish.CommitChoices = publish.DEFAULT_CHOICES,
    retries: publish.Retries = publish.DEFAULT,
    store: ObjectStore | None = None,
) -> MergedRegions:
    """Merge the flushed generations of regions, by default of all, and commit once.

    Generations are merged in order, starting after the last merged one of the version that the
    commit is based on; when another merge was faster, the rest is merged. Without any generation
    to merge, no version is made. With an engine, its tasks read and write the rows. The manifests
    of regions are in the table's own store unless another is given.
    """
    choices = choices.named("MERGE", base.location)

    def attempt(version: Snapshot) -> MergedRegions:
        try:
            todo = views.pin(version, views.Freshness.FLUSHED, regions, store=store)
        except errors.CorruptTableError as error:
            if not _is_replaced(version):
                raise
            # Generations that another merge has merged since may be collected already.
            raise errors.RetryableConflictError(error.problem) from error
        if not todo.regions:
            return MergedRegions(snapshot=version, marks=(), counts=RowCounts())
        try:
            return _merge(version, todo, engine, choices.within(retries))
        except errors.IncompatibleConflictError as conflict:
            if not _was_merged(version, todo):
                raise
            # What is left to merge is decided again.
            raise errors.RetryableConflictError(conflict.problem) from conflict

    clock = base.location.session.clock
    with log.Operation(log.MEMWAL, _SENTENCE, base.location.uri, clock=clock) as operation:
        done = publish.retry_on_newest(base, attempt, retries)
        if done.marks:
            operation.facts |= _facts(done)
    return done


_SENTENCE = "merged the MemWAL of {table} into version {version}"


def _facts(done: MergedRegions) -> log.Facts:
    counts = {f"rows_{name}": count for name, count in asdict(done.counts).items()}
    return {
        "version": done.snapshot.version,
        "operation": "MERGE",
        "regions": len(done.marks),
        **counts,
    }


def _merge(
    base: Snapshot, todo: views.PinnedView, engine: Engine | None, choices: publish.CommitChoices
) -> MergedRegions:
    marks = tuple(
        index_meta.MergedGeneration(
            region_id=region.manifest.region_id, generation=region.generations[-1].generation
        )
        for region in todo.regions
    )
    if engine is not None:
        return _commit(base, _change_by_tasks(base, todo, engine), marks, choices)
    view = todo.of(base)
    with _read_rows(view, range(len(view.regions))) as (rows, _):
        source, spec = _with_spec(view.shape, rows, clauses.Duplicates.REFUSE)
        return _commit(base, change_of(base, source, spec), marks, choices)


def _commit(
    base: Snapshot,
    change: RowChange,
    marks: tuple[index_meta.MergedGeneration, ...],
    choices: publish.CommitChoices,
) -> MergedRegions:
    done = commit_rows(base, replace(change, merged_generations=marks), choices)
    return MergedRegions(snapshot=done.snapshot, marks=marks, counts=done.counts)


def _is_replaced(base: Snapshot) -> bool:
    newest = open_snapshot(base.location, Latest(), main=base.main_location)
    return newest.version > base.version


def _was_merged(base: Snapshot, todo: views.PinnedView) -> bool:
    """Whether another merge has merged some of these generations since a version."""
    newest = open_snapshot(base.location, Latest(), main=base.main_location)
    if not has_mem_wal(newest):
        return False
    progress = details_of(newest).progress()
    return any(
        progress.get(r.manifest.region_id, 0) >= r.generations[0].generation for r in todo.regions
    )


_MINUTE = timedelta(minutes=1)


class BackgroundMerger:
    """Merges the generations of a table at intervals until it is closed, and collects garbage.

    A merge that loses against other commits, or finds the store unavailable, is tried again at the
    next interval. Any other failure ends the thread, and `close` raises it: the rows stay in their
    regions.
    """

    def __init__(
        self,
        base: Snapshot,
        *,
        every: timedelta = _MINUTE,
        collects: bool = True,
        choices: publish.CommitChoices = publish.DEFAULT_CHOICES,
    ) -> None:
        """Start the thread."""
        self._base = base
        self._every_s = every.total_seconds()
        self._collects = collects
        self._choices = choices
        self._due = threading.Condition()  # noqa: TID251  # used aside
        self._wanted = 0
        self._done = 0
        self._is_closed = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="memwal-merge", daemon=True)  # noqa: TID251  # used aside
        aside(self._thread.start)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()

    @driven_aside
    def merge_now(self) -> None:
        """Merge without waiting for the interval; return when a merge that began now has ended."""
        with self._due:
            self._wanted += 1
            wanted = self._wanted
            self._due.notify_all()
            self._due.wait_for(lambda: self._done >= wanted or not self._thread.is_alive())
        self._raise_failure()

    @driven_aside
    def close(self) -> None:
        """End the thread after a merge that is under way."""
        with self._due:
            self._is_closed = True
            self._due.notify_all()
        self._thread.join()
        self._raise_failure()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def _work(self) -> None:
        while True:
            with self._due:
                self._due.wait_for(
                    lambda: self._is_closed or self._wanted > self._done, self._every_s
                )
                if self._is_closed:
                    return
                wanted = self._wanted
            try:
                self._merge()
            except (errors.ContentionError, errors.StorageUnavailableError):
                pass
            except BaseException as error:  # noqa: BLE001  # raised by the caller's next call
                self._failure = error
            with self._due:
                self._done = wanted
                self._due.notify_all()
                if self._failure is not None:
                    return

    def _merge(self) -> None:
        newest = open_snapshot(self._base.location, Latest(), main=self._base.main_location)
        merged = merge_generations(newest, choices=self._choices)
        if self._collects and merged.marks:
            collect_garbage(merged.snapshot)
