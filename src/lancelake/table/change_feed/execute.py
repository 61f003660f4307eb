"""Execute a change feed task, locally or on an executor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

import numpy as np
import pyarrow as pa

from lancelake.data.arrays.row_difference import Mask, differing
from lancelake.data.column_reader import RowOffsets
from lancelake.errors import CorruptTableError, LanceTableError, VersionNotFoundError
from lancelake.storage.open import open_store
from lancelake.table.change_feed.emit import Emitter
from lancelake.table.change_feed.request import ChangeKind
from lancelake.table.change_feed.rows import FragmentRows, SideReader, live_rows, unshared_rows
from lancelake.table.change_feed.tasks import ChangeFeedPlan, ChangeTask, PairTask, RowsTask, Side

_UPDATES = (ChangeKind.UPDATE_BEFORE, ChangeKind.UPDATE_AFTER)


def run(plan: ChangeFeedPlan) -> pa.RecordBatchReader:
    """Stream the rows of a plan."""
    batches = (batch for task in plan.tasks for batch in execute(task))
    return pa.RecordBatchReader.from_batches(plan.schema, batches)


def execute(task: ChangeTask) -> Iterator[pa.RecordBatch]:
    """Yield the changes of a task; for an updated row, its preimage and then its postimage."""
    try:
        match task:
            case RowsTask():
                yield from _rows(task)
            case PairTask():
                yield from _pairs(task)
            case _:
                assert_never(task)
    except CorruptTableError as error:
        raise _explained(task, error) from error
    except LanceTableError as error:
        raise error.at(_sides(task)[0].at.files.root.uri) from error.__cause__


def _rows(task: RowsTask) -> Iterator[pa.RecordBatch]:
    rows = unshared_rows(task.side, task.others)
    if not len(rows.ids):
        return
    emitter = Emitter(task.spec, task.commit)
    reader = SideReader(task.side, task.spec)
    for batch, first in reader.stream(rows.offsets):
        ids = rows.ids[first : first + batch.num_rows]
        yield from emitter(batch, ids, task.kind)


def _pairs(task: PairTask) -> Iterator[pa.RecordBatch]:
    before, after = live_rows(task.before), live_rows(task.after)
    _, at_before, at_after = np.intersect1d(
        before.ids, after.ids, assume_unique=True, return_indices=True
    )
    old, new = before.at(at_before), after.at(at_after)
    marked = old.last_updated != new.last_updated
    if task.marks_tell:
        yield from _images(task, old.kept(marked), new.kept(marked), compared=None)
        old, new = old.kept(~marked), new.kept(~marked)
        if not task.doubts_unmarked:
            return
    elif not task.doubts_unmarked:
        old, new = old.kept(marked), new.kept(marked)
    yield from _images(task, old, new, compared=task.compared)


def _images(
    task: PairTask, old: FragmentRows, new: FragmentRows, *, compared: tuple[str, ...] | None
) -> Iterator[pa.RecordBatch]:
    """Read both images of a bounded number of rows at a time, in the order of the newer version.

    Either all rows changed, or only those whose compared columns differ are returned.
    """
    order = np.argsort(new.offsets, kind="stable")
    emitter = Emitter(task.spec, task.commit)
    before, after = (SideReader(s, task.spec, compared or ()) for s in (task.before, task.after))
    step = min(before.chunk_rows, after.chunk_rows)
    for start in range(0, len(order), step):
        part = order[start : start + step]
        was, became = _in_order(before, old.offsets[part]), _in_order(after, new.offsets[part])
        ids = new.ids[part]
        if compared is not None:
            changed = _differ(was, became, compared)
            kept = pa.array(changed)
            was, became, ids = was.filter(kept), became.filter(kept), ids[changed]
        yield from emitter.pairs(was, became, ids)


def _in_order(reader: SideReader, offsets: RowOffsets) -> pa.RecordBatch:
    if bool(np.all(offsets[1:] > offsets[:-1])):
        return reader.take(offsets)
    ascending, places = np.unique(offsets, return_inverse=True)
    return reader.take(ascending).take(pa.array(places))


def _differ(one: pa.RecordBatch, other: pa.RecordBatch, names: tuple[str, ...]) -> Mask:
    found = np.zeros(one.num_rows, dtype=np.bool_)
    for name in names:
        found |= differing(one.column(name), other.column(name))
    return found


def _sides(task: ChangeTask) -> tuple[Side, ...]:
    match task:
        case RowsTask():
            return (task.side, *task.others)
        case PairTask():
            return (task.before, task.after)
        case _:
            assert_never(task)


def _explained(task: ChangeTask, error: CorruptTableError) -> LanceTableError:
    """Distinguish a file that was cleaned up from a damaged one."""
    for side in _sides(task):
        path = _missing(side)
        if path is not None:
            return VersionNotFoundError(
                f"the changes of version {task.commit.version} need {path} of version "
                f"{side.at.version}, which no longer exists because it was cleaned up",
                table=side.at.files.root.uri,
                version=side.at.version,
                action=f"Start at version {task.commit.version} or later, or request inserts only.",
            )
    return error.at(_sides(task)[0].at.files.root.uri)


def _missing(side: Side) -> str | None:
    files, fragment = side.at.files, side.fragment
    places = [files.data_file(file) for file in fragment.files]
    if fragment.deletion_file is not None:
        places.append(files.deletion_file(fragment.id, fragment.deletion_file))
    return next((p.path for p in places if not open_store(p.root).exists(p.path)), None)
