"""Building an index segment by segment, or step by step.

Each step may run in another process; the caller moves the rows between them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from uuid import UUID

import pyarrow as pa
from pyroaring import BitMap

from lancelake.commit.snapshot import AtVersion, Snapshot, open_snapshot
from lancelake.data.codec.index_file import SegmentFolder
from lancelake.engine.port import Progress, Stages
from lancelake.errors import CorruptTableError, InvalidRequestError
from lancelake.format.ids import Version
from lancelake.format.index_meta import IndexFile, IndexMetadata
from lancelake.format.operations import CreateIndex
from lancelake.index.kind import BuildInput, BuiltSegment, IndexKind
from lancelake.index.stored_segment import StoredIndices, StoredSegment
from lancelake.index.vector import coded_rows
from lancelake.index.vector.build import PartitionCodes, write_segment
from lancelake.index.vector.kind import model_of
from lancelake.storage.store import confined_path
from lancelake.table.index.build import (
    DEFAULT_RUN,
    IndexRun,
    SegmentBuild,
    build_segment,
    new_place,
    row_counter,
)
from lancelake.table.index.refresh import merged_segment
from lancelake.table.index.request import (
    IndexRequest,
    IndexTarget,
    build_input,
    chosen_fragments,
    column_target,
    ensure_name,
    entry_path,
    resolve,
    stored_ids,
)
from lancelake.table.publish import publish, retry_on_newest
from lancelake.txn.overlap import without_changed_columns


def merge_segments(
    base: Snapshot, segments: Sequence[IndexMetadata], run: IndexRun = DEFAULT_RUN
) -> IndexMetadata:
    """Join segments of one column and kind into one, and return its entry; nothing is committed."""
    _ensure_distinct(base, segments)
    stored = [_stored(base, segment) for segment in segments]
    first = stored[0]
    for other in stored[1:]:
        if other.kind is not first.kind or other.entry.fields != first.entry.fields:
            problem = "segments of different columns or kinds cannot be merged"
            raise InvalidRequestError(problem, table=base.location.uri)
    column = entry_path(base, first.entry, first.kind)
    target = column_target(base, column or "", first.kind)
    return merged_segment(base, first.entry.name, target, stored, BitMap(), run)


def commit_segments(
    base: Snapshot,
    name: str,
    column: str,
    segments: Sequence[IndexMetadata],
    run: IndexRun = DEFAULT_RUN,
) -> Snapshot:
    """Commit segments as an index, or as more segments of one.

    A segment of the index whose fragments the new ones cover is replaced; one of which they
    cover only a part is refused.
    """
    ensure_name(base, name)
    _ensure_distinct(base, segments)

    def work(version: Snapshot) -> Snapshot:
        target = _target(version, column, segments)
        named = tuple(
            _complete(version, replace(_current(version, s), name=name)) for s in segments
        )
        removed = _replaced(version, name, target, named)
        _ensure_same_references(version, name, named, removed)
        operation = CreateIndex(new_indices=named, removed_indices=removed)
        choices = run.choices.within(run.retries)
        return publish(version, operation, choices)

    return retry_on_newest(base, work, run.retries)


def _target(base: Snapshot, column: str, segments: Sequence[IndexMetadata]) -> IndexTarget:
    kinds = {_stored(base, segment).kind for segment in segments}
    if len(kinds) > 1:
        names = ", ".join(sorted(kind.name for kind in kinds))
        problem = f"segments of different kinds ({names}) are not one index"
        raise InvalidRequestError(problem, table=base.location.uri)
    target = column_target(base, column, kinds.pop())
    for segment in segments:
        if segment.fields != (target.field_id,):
            problem = f"segment {segment.uuid} was not built on column {column!r}"
            raise InvalidRequestError(problem, table=base.location.uri)
    return target


def _stored(base: Snapshot, entry: IndexMetadata) -> StoredSegment:
    segment = StoredIndices(base).segment(entry)
    if segment is None:
        problem = (
            f"segment {entry.uuid} is of an unknown kind, or does not record which fragments it "
            "covers"
        )
        raise InvalidRequestError(problem, table=base.location.uri)
    return segment


def _ensure_distinct(base: Snapshot, segments: Sequence[IndexMetadata]) -> None:
    """Refuse no segments, a segment given twice, and two that cover the same fragment."""
    table = base.location.uri
    if not segments:
        raise InvalidRequestError("at least one segment of an index is needed", table=table)
    unique, count = Counter(segment.uuid for segment in segments).most_common(1)[0]
    if count > 1:
        raise InvalidRequestError(f"segment {unique} is given twice", table=table)
    covered = BitMap()
    for segment in segments:
        mine = segment.fragments() or BitMap()
        if mine & covered:
            problem = f"several segments cover fragment {(mine & covered).min()}"
            raise InvalidRequestError(problem, table=table)
        covered |= mine


def _replaced(
    base: Snapshot, name: str, target: IndexTarget, segments: Sequence[IndexMetadata]
) -> tuple[IndexMetadata, ...]:
    new = BitMap.union(BitMap(), *(segment.fragments() or BitMap() for segment in segments))
    existing = BitMap(fragment.id for fragment in base.manifest.fragments)
    replaced = []
    for entry in (i for i in base.indices if i.name == name):
        if entry.fields != (target.field_id,):
            problem = f"index {name!r} exists on another column"
            raise InvalidRequestError(problem, table=base.location.uri)
        covered = (entry.fragments() or BitMap()) & existing
        if not covered - new:
            replaced.append(entry)
        elif covered & new:
            problem = (
                f"a segment of index {name!r} covers fragments {sorted(covered - new)} in "
                "addition to those of the new segments"
            )
            raise InvalidRequestError(problem, table=base.location.uri)
    return tuple(replaced)


def _ensure_same_references(
    base: Snapshot,
    name: str,
    new: Sequence[IndexMetadata],
    removed: Sequence[IndexMetadata],
) -> None:
    """Refuse an index of which some segments store row ids, and others row addresses."""
    kept = [e for e in base.indices if e.name == name and e not in removed]
    known = [StoredIndices(base).segment(entry) for entry in (*kept, *new)]
    if len({segment.coverage.stored for segment in known if segment is not None}) > 1:
        raise InvalidRequestError(
            f"some segments of index {name!r} would store row ids, and others row addresses",
            table=base.location.uri,
            action="Build segments of all fragments, or run optimize_indices first.",
        )


def _current(base: Snapshot, entry: IndexMetadata) -> IndexMetadata:
    """Return an entry that covers no fragment whose column was written since it was built."""
    if entry.dataset_version == base.version:
        return entry
    built_from = open_snapshot(base.location, AtVersion(entry.dataset_version))
    (pruned,) = without_changed_columns(
        (entry,),
        base.manifest.schema,
        before=built_from.state.fragments_by_id(),
        after=base.state.fragments_by_id(),
    )
    return pruned


def _complete(base: Snapshot, entry: IndexMetadata) -> IndexMetadata:
    """Return an entry with the sizes of its files, all of which exist."""
    folder = base.files.index_dir(entry)
    store = folder.store
    names = [file.path for file in entry.files] or sorted(store.list_names(folder.path))
    if not names:
        problem = f"the folder of segment {entry.uuid} holds no file"
        raise CorruptTableError(problem, table=base.location.uri, path=folder.path)
    sizes = {name: store.head(f"{folder.path}/{confined_path(name)}").size_bytes for name in names}
    for file in entry.files:
        if sizes[file.path] != file.size_bytes:
            problem = f"file {file.path} of segment {entry.uuid} is not complete"
            raise CorruptTableError(problem, table=base.location.uri, path=file.path)
    files = tuple(IndexFile(path=name, size_bytes=size) for name, size in sizes.items())
    return replace(entry, files=files)


def build_part(
    base: Snapshot, request: IndexRequest, unique: UUID, run: IndexRun = DEFAULT_RUN
) -> None:
    """Write the part of a BTREE or INVERTED that covers the fragments of a request."""
    target = resolve(base, request)
    covered = chosen_fragments(base, request.fragment_ids)
    if not covered:
        raise InvalidRequestError("a part of an index needs a fragment", table=base.location.uri)
    stored = target.kind.stored_ids(0, has_stable_row_ids=base.manifest.has_stable_row_ids)
    counter = row_counter(base, f"index {target.path}", covered, run.progress)
    rows = build_input(
        base, target, covered, stored, parameters=request.parameters, on_rows=counter
    )
    place = new_place(base, unique)
    target.kind.write_part(rows, place.folder, covered.min())


def merge_parts(
    base: Snapshot, unique: UUID, kind: IndexKind, progress: Progress | None = None
) -> None:
    """Merge all parts under a uuid into the files of one segment, and remove the parts."""
    folder = new_place(base, unique).folder
    store = base.location.store
    names = list(store.list_names(folder.place.path))
    merged = kind.merge_parts(folder, names, Stages(f"merge {unique}", progress))
    if not merged:
        problem = f"there are no parts of an index under {unique}"
        action = "Build segments by create_index_uncommitted."
        raise InvalidRequestError(problem, table=base.location.uri, action=action)
    store.delete_many(f"{folder.place.path}/{name}" for name in merged)


def encoded_rows(
    base: Snapshot, request: IndexRequest, known: coded_rows.RowPartitions | None = None
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Encode the rows of fragments by the model that a request has, without training."""
    target = resolve(base, request)
    fragments = chosen_fragments(base, request.fragment_ids)
    stored = stored_ids(base, target.kind)
    rows = build_input(base, target, fragments, stored, parameters=request.parameters)
    model, _ = model_of(rows, target.kind.name)
    return coded_rows.coded_schema(coded_rows.product_codes(model)), coded_rows.coded_batches(
        rows, model, known
    )


def segment_of(
    base: Snapshot,
    request: IndexRequest,
    partition: Callable[[int], PartitionCodes | None],
    *,
    version: Version,
    run: IndexRun = DEFAULT_RUN,
) -> IndexMetadata:
    """Write a segment of rows that were encoded in a version; nothing is committed."""

    def write(build: SegmentBuild, folder: SegmentFolder) -> BuiltSegment:
        rows = BuildInput(dtype=build.target.dtype, batches=(), parameters=build.parameters)
        model, settings = model_of(rows, build.target.kind.name)
        parts = map(partition, range(len(model.partitions)))
        return write_segment(model, settings, parts, folder)

    entry = build_segment(base, request, replace(run, builder=write))
    # Rows that were updated since must not be found by their old codes.
    return replace(entry, dataset_version=min(version, entry.dataset_version))
