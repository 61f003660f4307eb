"""Uncommitted segments built by workers: merged, and committed as one index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import CorruptTableError, InvalidRequestError
from lancelake.format.index_meta import IndexFile, IndexMetadata
from lancelake.format.operations import CreateIndex
from lancelake.index.stored_segment import StoredIndices, StoredSegment
from lancelake.storage.confined import confined_path
from lancelake.storage.open import open_store
from lancelake.table.conflict_retry import racing, until_it_lands
from lancelake.table.index.build import DEFAULT_RUN, IndexRun
from lancelake.table.index.merge import merged_segment
from lancelake.table.index.request import IndexTarget, column_target, ensure_name
from lancelake.table.open import AtVersion, open_snapshot
from lancelake.table.publish import new_transaction, publish
from lancelake.txn import index_coverage


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
    column = base.manifest.schema.path_of(first.entry.fields[0])
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
        operation = CreateIndex(
            new_indices=named, removed_indices=_replaced(version, name, target, named)
        )
        choices = racing(run.choices, run.retries)
        return publish(version, new_transaction(operation, version.version, choices), choices)

    return until_it_lands(base, work, run.retries, run.choices.surroundings)


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
    found = StoredIndices(base).segment(entry)
    if found is None:
        problem = (
            f"segment {entry.uuid} is of an unknown kind, or does not record which fragments it "
            "covers"
        )
        raise InvalidRequestError(problem, table=base.location.uri)
    return found


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


def _current(base: Snapshot, entry: IndexMetadata) -> IndexMetadata:
    """Return an entry that covers no fragment whose column was written since it was built."""
    if entry.dataset_version == base.version:
        return entry
    built_from = open_snapshot(base.location, AtVersion(entry.dataset_version))
    (pruned,) = index_coverage.without_changed_columns(
        (entry,),
        base.manifest.schema,
        before=built_from.state.fragments_by_id(),
        after=base.state.fragments_by_id(),
    )
    return pruned


def _complete(base: Snapshot, entry: IndexMetadata) -> IndexMetadata:
    """Return an entry with the sizes of its files, all of which exist."""
    folder = base.files.index_dir(entry)
    store = open_store(folder.root)
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
