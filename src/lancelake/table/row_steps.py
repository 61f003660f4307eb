"""Steps of changes of rows: find them, mark them deleted, write others, commit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.data.blobs import value_field, with_blobs
from lancelake.data.column_file import WriteTask
from lancelake.data.commit_ports import sync_deletion_names, write_deletions
from lancelake.data.fragment_reader import load_deletions, physical_rows
from lancelake.engine.port import Engine, Job, Progress
from lancelake.errors import InvalidRequestError
from lancelake.expr.predicate import Filter, Predicate
from lancelake.format.deletion import choose_encoding
from lancelake.format.fragment import Fragment
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FieldId, FragmentId
from lancelake.format.index_meta import MergedGeneration
from lancelake.format.logical_types import has_blobs
from lancelake.format.operations import Delete, Transaction, Update
from lancelake.format.rowids import RowIdSequence
from lancelake.format.schema import Field
from lancelake.scan.execute import kept_offsets
from lancelake.scan.plan import ScanTask
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.stream import group_tasks, kept_offsets_of, pack_tasks
from lancelake.scan.task_rows import ScanColumns
from lancelake.storage import disk_sync
from lancelake.table import publish
from lancelake.table.operation_record import NO_ROWS, RowCounts
from lancelake.threads import Pool
from lancelake.txn.key_bloom import InsertedKeys
from lancelake.txn.rules import AffectedRows, RowOffsets


def row_files(base: Snapshot) -> WriteTask:
    """Return the write settings for rows of a version."""
    return WriteTask(
        root=base.location,
        schema=base.manifest.schema,
        file_version=base.manifest.data_version,
        casts=True,
        allow_external_blobs=True,
        # The table already has such columns.
        newest_readers_only=True,
    )


def with_row_ids(
    fragments: Sequence[Fragment], row_ids: Sequence[pa.Array]
) -> tuple[Fragment, ...]:
    """Assign row ids to the first rows of fragments written from one stream."""
    parts = [np.asarray(ids, dtype=np.uint64) for ids in row_ids]
    given = np.concatenate(parts) if parts else np.array([], dtype=np.uint64)
    numbered: list[Fragment] = []
    first = 0
    for fragment in fragments:
        last = first + (fragment.physical_rows or 0)
        ids = given[first:last]
        numbered.append(
            replace(fragment, row_ids=RowIdSequence.of(ids).encode()) if len(ids) else fragment
        )
        first = last
    return tuple(numbered)


RowsByFragment = dict[FragmentId, BitMap]
"""Row offsets by fragment; fragments without rows are omitted."""

# Smaller parts would decode the same pages repeatedly.
_LEAST_ROWS = 1 << 20
_TASK_BYTES = 32 << 20
_GROUP_ROWS = 1 << 14
_GROUP_SCANS = 256
_LENGTH_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class FindRows:
    """Rows of some fragments that match the predicate of a scan."""

    scans: tuple[ScanTask, ...]

    @property
    def memory_bytes(self) -> int:
        """Estimated memory of a run."""
        return _TASK_BYTES

    def run(self) -> bytes:
        """Return the offsets as portable bitmaps, one for each scan."""
        columns = ScanColumns.of(self.scans[0].spec)
        matches = (
            rows for group in group_tasks(self.scans) for rows in kept_offsets_of(group, columns)
        )
        parts = (bytes(rows.serialize()) for rows in matches)
        return b"".join(len(each).to_bytes(_LENGTH_BYTES, "little") + each for each in parts)


def find_rows(
    base: Snapshot,
    condition: Filter | None,
    engine: Engine,
    *,
    progress: Progress | None = None,
) -> RowsByFragment:
    """Return the live rows that match a condition, reading only the columns it refers to.

    Rows that an index proves to match are not read.
    """
    request = ScanRequest(
        columns=(), filter="true" if condition is None else condition, remembers_small=True
    )
    tasks = plan(base, request).tasks
    known = [task for task in tasks if not task.recheck]
    matches = {task.fragment.id: kept_offsets(task) for task in known}
    scans = divided([task for task in tasks if task.recheck], engine.parallelism)
    # Each task has a fixed cost, so small fragments share one.
    groups = pack_tasks(scans, _rows_at_most, most_rows=_GROUP_ROWS, most_tasks=_GROUP_SCANS)
    job = Job(
        description=f"find rows of {base.location.uri}",
        tasks=[FindRows(scans=group) for group in groups],
        progress=progress,
    )
    results = (rows for result in engine.run(job) for rows in _bitmaps(result))
    for scan, rows in zip(scans, results, strict=True):
        matches[scan.fragment.id] = matches.get(scan.fragment.id, BitMap()) | rows
    ids = (task.fragment.id for task in tasks)
    return {i: matches[i] for i in ids if matches[i]}


def _bitmaps(data: bytes) -> Iterator[BitMap]:
    """Decode the output of a task."""
    start = 0
    while start < len(data):
        first = start + _LENGTH_BYTES
        start = first + int.from_bytes(data[start:first], "little")
        yield BitMap.deserialize(data[first:start])


def _rows_at_most(scan: ScanTask) -> int:
    return scan.most_rows or _GROUP_ROWS


def divided(tasks: Sequence[ScanTask], parallelism: int) -> list[ScanTask]:
    """Split the tasks of large fragments while there are fewer tasks than can run in parallel."""
    if len(tasks) >= parallelism:
        return list(tasks)
    return [part for task in tasks for part in _parts(task, parallelism)]


def _parts(task: ScanTask, count: int) -> list[ScanTask]:
    rows = task.fragment.physical_rows or 0
    step = max(_LEAST_ROWS, -(-rows // count))
    if (task.most_rows or 0) <= step:
        return [task]
    return [
        replace(task, start=start, stop=min(start + step, rows)) for start in range(0, rows, step)
    ]


def count_rows(rows_by_fragment: RowsByFragment) -> int:
    """Count rows over all fragments."""
    return sum(len(rows) for rows in rows_by_fragment.values())


def condition_text(condition: Filter | None) -> str:
    """Return the text of a condition as recorded in a transaction."""
    if condition is None:
        return "true"
    return condition.text if isinstance(condition, Predicate) else str(condition)


_FILES_AT_ONCE = 16

Done = TypeVar("Done")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFragments:
    """Updated and removed fragments of an operation that deletes or moves rows."""

    updated: tuple[Fragment, ...]
    removed: tuple[FragmentId, ...]
    affected: AffectedRows


def mark_deleted(base: Snapshot, rows: Mapping[FragmentId, BitMap]) -> ChangedFragments:
    """Write the deletion files for these rows, which must be live in the version."""
    by_id = {fragment.id: fragment for fragment in base.manifest.fragments}
    missing = sorted(set(rows) - set(by_id))
    if missing:
        problem = f"fragment {missing[0]} is not part of version {base.version}"
        raise InvalidRequestError(problem, table=base.location.uri, fragment=missing[0])
    chosen = [by_id[i] for i in sorted(rows)]

    def without(fragment: Fragment) -> Fragment | None:
        return _without(base, fragment, rows[fragment.id])

    if len(chosen) <= 1:
        left = [without(fragment) for fragment in chosen]
    else:
        with Pool(_FILES_AT_ONCE) as pool:
            left = list(pool.map(without, chosen))
    if any(fragment is not None for fragment in left):
        sync_deletion_names(base.location)
    affected: dict[FragmentId, RowOffsets] = {
        i: bytes(offsets.serialize()) for i, offsets in rows.items()
    }
    return ChangedFragments(
        updated=tuple(fragment for fragment in left if fragment is not None),
        removed=tuple(
            before.id for before, after in zip(chosen, left, strict=True) if after is None
        ),
        affected=FrozenMap(affected),
    )


def mark_deleted_during(
    base: Snapshot, rows: Mapping[FragmentId, BitMap], work: Callable[[], Done]
) -> tuple[ChangedFragments, Done]:
    """Mark rows as deleted while other work runs, if both wait for a disk or a network."""
    if base.location.scheme in ("file", "memory") and not disk_sync.waits():
        return mark_deleted(base, rows), work()
    with Pool(1) as pool:
        gone = pool.submit(mark_deleted, base, rows)
        done = work()
        return gone.result(), done


def _without(base: Snapshot, fragment: Fragment, rows: BitMap) -> Fragment | None:
    """Return a fragment with more deleted rows; None if no row is left."""
    gone = load_deletions(base.files, fragment) | rows
    if len(gone) >= physical_rows(base.files, base.manifest_at, fragment):
        return None
    before = fragment.deletion_file
    encoding = choose_encoding(len(gone), None if before is None else before.file_type)
    file = write_deletions(
        base.location, fragment.id, gone, base.version, encoding, syncs_name=False
    )
    return replace(fragment, deletion_file=file)


def staged(base: Snapshot, fragments: Sequence[Fragment]) -> Snapshot:
    """Return the version with only these fragments."""
    numbered = tuple(
        replace(fragment, id=FragmentId(number)) for number, fragment in enumerate(fragments)
    )
    manifest = replace(base.manifest, fragments=numbered)
    # What indices know of fragments with these numbers is about other rows.
    return replace(base, file=replace(base.file, manifest=manifest, index_section=None))


def writable(
    task: ScanTask, batches: Iterator[pa.RecordBatch], *, without: Collection[str] = ()
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task; blobs of columns in `without` remain descriptors."""
    schema = task.spec.table_schema
    held = {f.name: f for f in schema.fields if has_blobs(f) and f.name not in without}
    for batch in batches:
        blobs = tuple(held[name] for name in batch.schema.names if name in held)
        if not blobs:
            yield batch
            continue
        stored = batch.select([field.name for field in blobs])
        chosen = replace(schema, fields=blobs)
        for columns, start in with_blobs(task.spec.files, task.fragment, chosen, stored):
            yield _with_values(batch.slice(start, len(columns[0])), blobs, columns)


def _with_values(
    batch: pa.RecordBatch, fields: tuple[Field, ...], columns: list[pa.Array]
) -> pa.RecordBatch:
    for field, column in zip(fields, columns, strict=True):
        position = batch.schema.get_field_index(field.name)
        batch = batch.set_column(position, value_field(field), column)
    return batch


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedRows:
    """Fragments with the new values of changed rows and with new rows; the keys of the latter."""

    fragments: tuple[Fragment, ...] = ()
    keys: InsertedKeys | None = None
    counts: RowCounts | None = None
    """What the operation records; None if it counts the rows of fragments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """A change of rows: those that leave their place, and others that come."""

    gone: RowsByFragment
    add: Callable[[], AddedRows] = AddedRows
    """Writes new rows, and the new values of rows that are not deleted."""

    fragments: tuple[Fragment, ...] = ()
    """Rows that the caller has written, whose files stay if the commit is refused."""

    fields: tuple[FieldId, ...] | None = None
    """Columns whose values change, by default all."""

    predicate: str | None = None
    """Set if the change deletes the rows that match it."""

    merged_generations: tuple[MergedGeneration, ...] = ()
    once: publish.OnceOnly | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRows:
    """A change of rows that is ready to be committed."""

    transaction: Transaction
    choices: publish.CommitChoices
    added: AddedRows

    @property
    def counts(self) -> RowCounts:
        """How many rows change."""
        return self.added.counts or NO_ROWS


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsChanged:
    """The version that a change of rows made, and how many rows it changed."""

    snapshot: Snapshot
    counts: RowCounts = NO_ROWS

    @property
    def rows(self) -> int:
        """Number of changed rows."""
        return self.counts.inserted + self.counts.updated + self.counts.deleted


def commit_rows(base: Snapshot, change: RowChange, choices: publish.CommitChoices) -> RowsChanged:
    """Change rows of a version and commit; files that a refused commit has written are removed."""
    ready = prepare_rows(base, change, choices)
    with publish.removed_if_refused(base.files, ready.added.fragments):
        made = publish.publish(base, ready.transaction, ready.choices)
    return RowsChanged(snapshot=made, counts=ready.counts)


def prepare_rows(base: Snapshot, change: RowChange, choices: publish.CommitChoices) -> PreparedRows:
    """Perform all steps of a change of rows except its commit."""
    marked, added = mark_deleted_during(base, change.gone, change.add)
    operation, ids = _operation(base, change, marked, added), base.location.session.ids
    transaction = publish.new_transaction(operation, base.version, choices, ids=ids)
    keys, counts = added.keys, added.counts
    return PreparedRows(
        transaction=transaction if change.once is None else change.once.stamped(transaction),
        choices=replace(
            choices,
            affected_rows=marked.affected,
            inserted_keys=None if keys is None else keys.hashes,
            work=choices.work if counts is None else replace(choices.work, rows=counts),
        ),
        added=added,
    )


def _operation(
    base: Snapshot, change: RowChange, marked: ChangedFragments, added: AddedRows
) -> Delete | Update:
    if change.predicate is not None:
        return Delete(
            updated_fragments=marked.updated,
            deleted_fragment_ids=marked.removed,
            predicate=change.predicate,
        )
    fields = change.fields
    if fields is None:
        fields = tuple(field.id for field in base.manifest.schema.fields)
    return Update(
        removed_fragment_ids=marked.removed,
        updated_fragments=marked.updated,
        new_fragments=change.fragments + added.fragments,
        fields_for_preserving_frag_bitmap=fields,
        inserted_rows=None if added.keys is None else added.keys.recorded,
        merged_generations=change.merged_generations,
    )
