"""Merge of generations into the table: one commit with the rows and the progress."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

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
from lancelake.format.index_meta import MEM_WAL
from lancelake.format.memwal.region_manifest import Generation
from lancelake.format.merged_generation import MergedGeneration
from lancelake.format.operations import Update
from lancelake.memwal.initialize import details_of
from lancelake.memwal.region_files import RegionFiles, list_regions
from lancelake.memwal.shape import TOMBSTONE, RowShape
from lancelake.memwal.view import MemWalView, RegionRows, SeenKeys, unmerged_generations
from lancelake.storage.open import open_store
from lancelake.storage.store import ObjectStore
from lancelake.table.conflict_retry import DEFAULT, Retries, racing, until_it_lands
from lancelake.table.merge.clauses import DeleteRow, InsertValues, MergeSpec, UpdateSet
from lancelake.table.merge.run import MergeCounts, prepare, with_changes
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
    to merge, no version is made. The manifests of regions are in the table's own store unless
    another is given.
    """

    def work(version: Snapshot) -> MergedRegions:
        try:
            todo = _todo(version, regions, store)
        except CorruptTableError as error:
            if not _is_replaced(version):
                raise
            # Generations that another merge has merged since may be collected already.
            raise RetryableConflictError(error.problem) from error
        if not todo:
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
) -> tuple[RegionRows, ...]:
    progress = details_of(base).progress()
    found: list[RegionRows] = []
    for region in list_regions(base.location, store) if regions is None else regions:
        manifest = RegionFiles(store=store or open_store(base.location), region=region).latest()
        if manifest is None:
            continue
        generations = unmerged_generations(manifest, progress.get(region, 0))
        if generations:
            found.append(RegionRows(region=region, generations=generations))
    return tuple(found)


def _merged(
    base: Snapshot, todo: Sequence[RegionRows], engine: Engine | None, choices: CommitChoices
) -> MergedRegions:
    shape = RowShape.of(base)
    view = MemWalView(base=base, shape=shape, regions=tuple(todo))
    marks = tuple(
        MergedGeneration(region_id=rows.region, generation=_last(rows.generations)) for rows in todo
    )
    reader = pa.RecordBatchReader.from_batches(shape.arrow, _newest(view))
    with kept(reader) as source:
        ready = prepare(base, source, _spec(shape), engine=engine, choices=choices)
        operation = ready.transaction.operation
        if not isinstance(operation, Update):
            raise InternalError("a merge is an Update")
        marked = replace(operation, merged_generations=marks)
        chosen = with_changes(choices, ready.affected, ready.inserted_keys)
        made = publish(base, replace(ready.transaction, operation=marked), chosen)
    return MergedRegions(snapshot=made, marks=marks, counts=ready.counts)


def _newest(view: MemWalView) -> Iterator[pa.RecordBatch]:
    for region in view.regions:
        for batch in view.unmerged(region, SeenKeys(view.shape)):
            if batch.num_rows:
                yield batch


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


def _was_merged(base: Snapshot, todo: Sequence[RegionRows]) -> bool:
    """Whether another merge has merged some of these generations since a version."""
    newest = open_snapshot(base.location, Latest(), main=base.main_location)
    if all(index.name != MEM_WAL for index in newest.indices):
        return False
    progress = details_of(newest).progress()
    return any(progress.get(r.region, 0) >= r.generations[0].generation for r in todo)
