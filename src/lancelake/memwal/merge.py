"""Merge of generations into the table: one commit with the rows and the progress."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.engine.port import Engine
from lancelake.errors import (
    CorruptTableError,
    IncompatibleConflictError,
    InternalError,
    RetryableConflictError,
)
from lancelake.format.column_path import quoted_name
from lancelake.format.frozen import FrozenMap
from lancelake.format.memwal.region_manifest import Generation
from lancelake.format.merged_generation import MergedGeneration
from lancelake.format.operations import Update
from lancelake.memwal.distributed_merge import prepare_regions
from lancelake.memwal.ended import has_mem_wal
from lancelake.memwal.initialize import details_of
from lancelake.memwal.pinned import PinnedRegion, PinnedView
from lancelake.memwal.region_files import RegionFiles, list_regions
from lancelake.memwal.shape import TOMBSTONE, RowShape
from lancelake.memwal.view import MemWalView, RegionRows, SeenKeys, unmerged_generations
from lancelake.storage.open import open_store
from lancelake.storage.store import ObjectStore
from lancelake.table.conflict_retry import DEFAULT, Retries, racing, until_it_lands
from lancelake.table.merge.clauses import (
    DeleteRow,
    InsertAll,
    InsertValues,
    MergeSpec,
    UpdateAll,
    UpdateSet,
)
from lancelake.table.merge.run import MergeCounts, Prepared, prepare, with_changes
from lancelake.table.merge.source import kept
from lancelake.table.open import Latest, open_snapshot
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices, publish


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedRegions:
    """The version after a merge, the generations that it merged, and how many rows changed."""

    snapshot: Snapshot
    marks: tuple[MergedGeneration, ...]
    counts: MergeCounts


@names_table
def merge_generations(
    base: Snapshot,
    regions: Sequence[uuid.UUID] | None = None,
    *,
    engine: Engine | None = None,
    choices: CommitChoices = DEFAULT_CHOICES,
    retries: Retries = DEFAULT,
    store: ObjectStore | None = None,
) -> MergedRegions:
    """Merge the flushed generations of regions, by default of all, and commit once.

    Generations are merged in order, starting after the last merged one of the version that the
    commit is based on; when another merge was faster, the rest is merged. Without any generation
    to merge, no version is made. With an engine, its tasks read and write the rows. The manifests
    of regions are in the table's own store unless another is given.
    """

    def work(version: Snapshot) -> MergedRegions:
        try:
            todo = _todo(version, regions, store)
        except CorruptTableError as error:
            if not _is_replaced(version):
                raise
            # Generations that another merge has merged since may be collected already.
            raise RetryableConflictError(error.problem) from error
        if not todo.regions:
            none = MergeCounts(inserted=0, updated=0, deleted=0)
            return MergedRegions(snapshot=version, marks=(), counts=none)
        try:
            return _merged(version, todo, engine, racing(choices, retries))
        except IncompatibleConflictError as conflict:
            if not _was_merged(version, todo):
                raise
            # What is left to merge is decided again.
            raise RetryableConflictError(conflict.problem) from conflict

    return until_it_lands(base, work, retries, choices.surroundings)


def _todo(
    base: Snapshot, regions: Sequence[uuid.UUID] | None, store: ObjectStore | None
) -> PinnedView:
    progress = details_of(base).progress()
    found: list[PinnedRegion] = []
    for region in list_regions(base.location, store) if regions is None else regions:
        manifest = RegionFiles(store=store or open_store(base.location), region=region).latest()
        if manifest is None:
            continue
        generations = unmerged_generations(manifest, progress.get(region, 0))
        if generations:
            found.append(PinnedRegion(manifest=manifest, generations=generations, last=0))
    return PinnedView(
        location=base.location, main=base.main_location, version=base.version, regions=tuple(found)
    )


def _merged(
    base: Snapshot, todo: PinnedView, engine: Engine | None, choices: CommitChoices
) -> MergedRegions:
    marks = tuple(
        MergedGeneration(region_id=r.manifest.region_id, generation=_last(r.generations))
        for r in todo.regions
    )
    if engine is None:
        ready = _prepared_here(base, todo, choices)
    else:
        ready = prepare_regions(base, todo, engine, choices)
    operation = ready.transaction.operation
    if not isinstance(operation, Update):
        raise InternalError("a merge is an Update")
    marked = replace(operation, merged_generations=marks)
    chosen = with_changes(choices, ready.affected, ready.inserted_keys)
    made = publish(base, replace(ready.transaction, operation=marked), chosen)
    return MergedRegions(snapshot=made, marks=marks, counts=ready.counts)


def _prepared_here(base: Snapshot, todo: PinnedView, choices: CommitChoices) -> Prepared:
    shape = RowShape.of(base)
    rows = tuple(
        RegionRows(region=r.manifest.region_id, generations=r.generations) for r in todo.regions
    )
    view = MemWalView(base=base, shape=shape, regions=rows)
    with kept(pa.RecordBatchReader.from_batches(shape.arrow, _newest(view))) as source:
        if pc.any(source.columns([TOMBSTONE]).column(0)).as_py():
            return prepare(base, source, _spec(shape), choices=choices)
        # Without tombstones nothing has to be decided row by row.
        return prepare(base, source.without(TOMBSTONE), _upserts(shape), choices=choices)


def _newest(view: MemWalView) -> Iterator[pa.RecordBatch]:
    for region in view.regions:
        for batch in view.unmerged(region, SeenKeys(view.shape)):
            if batch.num_rows:
                yield batch


def _upserts(shape: RowShape) -> MergeSpec:
    """Replace or insert all rows."""
    return MergeSpec(on=shape.keys, matched=(UpdateAll(),), not_matched=(InsertAll(),))


def _spec(shape: RowShape) -> MergeSpec:
    """Delete the rows of tombstones; replace or insert all others."""
    deleted = f"source.{quoted_name(TOMBSTONE)}"
    values = FrozenMap({n: f"source.{quoted_name(n)}" for n in shape.table.names})
    return MergeSpec(
        on=shape.keys,
        matched=(DeleteRow(condition=deleted), UpdateSet(values=values)),
        not_matched=(InsertValues(values=values, condition=f"NOT {deleted}"),),
    )


def _last(generations: Sequence[Generation]) -> int:
    return generations[-1].generation


def _is_replaced(base: Snapshot) -> bool:
    newest = open_snapshot(base.location, Latest(), main=base.main_location)
    return newest.version > base.version


def _was_merged(base: Snapshot, todo: PinnedView) -> bool:
    """Whether another merge has merged some of these generations since a version."""
    newest = open_snapshot(base.location, Latest(), main=base.main_location)
    if not has_mem_wal(newest):
        return False
    progress = details_of(newest).progress()
    return any(
        progress.get(r.manifest.region_id, 0) >= r.generations[0].generation for r in todo.regions
    )
