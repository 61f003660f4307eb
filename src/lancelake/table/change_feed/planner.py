"""Plan a change feed between two versions. Reads manifests, but no data or deletion files."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.errors import InvalidRequestError, SchemaMismatchError, VersionNotFoundError
from lancelake.expr.predicate import Predicate, predicate
from lancelake.format.arrow_schema import storage_schema
from lancelake.format.blobs import described_schema
from lancelake.format.operations import (
    Append,
    Delete,
    Operation,
    Overwrite,
    Restore,
    Rewrite,
    UnknownOperation,
)
from lancelake.format.schema import Schema
from lancelake.scan.outputs import (
    ColumnOutput,
    output_field,
    resolve_outputs,
)
from lancelake.scan.request import ScanRequest
from lancelake.table.change_feed.columns import View, own_view, view_before
from lancelake.table.change_feed.fragments import (
    ComparedFragment,
    Overlap,
    candidates,
    differing,
    has_same_deletions,
    has_same_rows,
    rewritten_columns,
)
from lancelake.table.change_feed.request import (
    FEED_FIELDS,
    FEED_NAMES,
    ChangeKind,
    ChangeRequest,
)
from lancelake.table.change_feed.tasks import (
    ChangeFeedPlan,
    ChangeTask,
    Commit,
    FeedSpec,
    PairTask,
    RowsTask,
    Side,
    VersionFiles,
    needed_columns,
)
from lancelake.table.change_feed.versions import (
    Point,
    VersionRange,
    ensure_row_ids,
    version_range,
)

_UPDATES = frozenset({ChangeKind.UPDATE_BEFORE, ChangeKind.UPDATE_AFTER})


@names_table
def plan_changes(
    snapshot: Snapshot, begin: Point, end: Point | None, request: ChangeRequest
) -> ChangeFeedPlan:
    """Plan the changes after `begin`, up to and including `end` (default: this snapshot)."""
    versions = version_range(snapshot, begin, end)
    newest = versions.at(versions.end)
    if newest is None:
        newest = versions.after(1)
    ensure_row_ids(newest)
    spec = _spec(newest.manifest.schema, request)
    planned = _net(versions, spec, newest) if request.is_net else _walk(versions, spec)
    return ChangeFeedPlan(spec=spec, begin=versions.begin, end=versions.end, tasks=planned)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """Two versions and the operation between them; None if it is unknown."""

    spec: FeedSpec
    before: Snapshot | None
    after: Snapshot
    view_before: View
    view_after: View
    operation: Operation | None

    @property
    def commit(self) -> Commit:
        """The version that this step created."""
        manifest = self.after.manifest
        return Commit(version=manifest.version, timestamp_ns=manifest.timestamp_ns)

    @property
    def is_single(self) -> bool:
        """Whether exactly one known change separates the versions."""
        return self.operation is not None and not isinstance(self.operation, Restore)

    @property
    def has_added_columns(self) -> bool:
        """Whether one of the versions lacks a column that the other has."""
        return self.view_before.lacking != self.view_after.lacking

    def ensure_alike(self, view: View, more: tuple[str, ...]) -> None:
        """Refuse columns that have another kind in one of the versions."""
        bad = sorted(view.unlike & {*needed_columns(self.spec), *more})
        if bad:
            problem = (
                f"column {bad[0]} changed its kind at version {self.after.version}: its older "
                "values cannot be converted to the newer kind"
            )
            action = (
                f"Omit the column, or read the changes up to version {self.after.version - 1} "
                "and those after it separately."
            )
            raise SchemaMismatchError(
                problem, table=self.after.location.uri, action=action, column=bad[0]
            )


def _walk(versions: VersionRange, spec: FeedSpec) -> tuple[ChangeTask, ...]:
    """Plan version by version, from the last one, whose columns are returned, to the first."""
    steps = [list(_tasks(step)) for step in _steps(versions, spec)]
    return tuple(task for tasks in reversed(steps) for task in tasks)


def _steps(versions: VersionRange, spec: FeedSpec) -> Iterator[_Step]:
    view = own_view(spec.last)
    for before, after in versions.steps_back():
        ensure_row_ids(before, after)
        operation = _operation(after)
        step = _Step(
            spec=spec,
            before=before,
            after=after,
            view_before=_older(spec, view, before, operation),
            view_after=view,
            operation=operation,
        )
        yield step
        view = step.view_before


def _net(versions: VersionRange, spec: FeedSpec, newest: Snapshot) -> tuple[ChangeTask, ...]:
    """Plan the net difference between the first and the last version."""
    first = versions.at(versions.begin)
    if versions.begin == versions.end:
        return ()
    ensure_row_ids(first, newest)
    step = _Step(
        spec=spec,
        before=first,
        after=newest,
        view_before=_net_view(versions, spec, first),
        view_after=own_view(spec.last),
        operation=None,
    )
    return tuple(_tasks(step))


def _net_view(versions: VersionRange, spec: FeedSpec, first: Snapshot | None) -> View:
    """Return the view of the first version; column changes are followed while versions exist."""
    own = own_view(spec.last)
    if first is None or first.manifest.schema.fields == spec.last.fields:
        return own
    try:
        return deque((step.view_before for step in _steps(versions, spec)), maxlen=1)[0]
    except VersionNotFoundError:
        return _older(spec, own, first, None)


def _operation(snapshot: Snapshot) -> Operation | None:
    found = snapshot.transaction
    if found is None or isinstance(found.operation, UnknownOperation):
        return None
    return found.operation


def _older(
    spec: FeedSpec, view: View, before: Snapshot | None, operation: Operation | None
) -> View:
    if before is None:
        return view
    return view_before(spec.last, view, before.manifest.schema, operation=operation)


def _tasks(step: _Step) -> Iterator[ChangeTask]:
    operation, kinds = step.operation, step.spec.kinds
    if isinstance(operation, Rewrite):
        return
    gone, come = _candidates(step)
    is_replaced = isinstance(operation, Overwrite)
    shared = Overlap(() if is_replaced else gone, () if is_replaced else come)
    if ChangeKind.DELETE in kinds and not isinstance(operation, Append):
        yield from _deletes(step, gone, shared)
    if kinds & _UPDATES and not isinstance(operation, Append | Delete):
        yield from _updates(step, gone, shared)
    if ChangeKind.INSERT in kinds and not isinstance(operation, Delete):
        yield from _inserts(step, come, shared)


def _candidates(step: _Step) -> tuple[list[ComparedFragment], list[ComparedFragment]]:
    after = _version_files(step.after, step.view_after)
    if step.before is None:
        return [], candidates(after, step.after.manifest.fragments)
    before = _version_files(step.before, step.view_before)
    old, new = step.before.manifest.fragments, step.after.manifest.fragments
    if isinstance(step.operation, Overwrite):
        return candidates(before, old), candidates(after, new)
    last = step.spec.last if step.has_added_columns else None
    return differing(before, old, after, new, last=last)


def _deletes(step: _Step, gone: list[ComparedFragment], shared: Overlap) -> Iterator[ChangeTask]:
    for old in gone:
        others = shared.with_old(old)
        if any(_has_same_live_rows(old.side, new.side) for new in others):
            continue
        yield _rows_task(step, ChangeKind.DELETE, old, others, step.view_before)


def _inserts(step: _Step, come: list[ComparedFragment], shared: Overlap) -> Iterator[ChangeTask]:
    for new in come:
        others = shared.with_new(new)
        if any(_brings_nothing(step, old.side, new.side) for old in others):
            continue
        yield _rows_task(step, ChangeKind.INSERT, new, others, step.view_after)


def _updates(step: _Step, gone: list[ComparedFragment], shared: Overlap) -> Iterator[ChangeTask]:
    for old in gone:
        for new in shared.with_old(old):
            rewritten = rewritten_columns(old.side, new.side, step.spec.last)
            in_place = has_same_rows(old.fragment, new.fragment)
            if in_place and not rewritten:
                continue
            step.ensure_alike(step.view_before, rewritten)
            step.ensure_alike(step.view_after, rewritten)
            yield PairTask(
                spec=step.spec,
                commit=step.commit,
                before=old.side,
                after=new.side,
                compared=rewritten,
                # A single operation changes every row it touches; across several operations a row
                # may be unchanged.
                marks_tell=step.is_single,
                # A compaction moves rows without marking or changing them.
                doubts_unmarked=in_place or step.is_single or step.has_added_columns,
            )


def _rows_task(
    step: _Step, kind: ChangeKind, row: ComparedFragment, others: list[ComparedFragment], view: View
) -> RowsTask:
    step.ensure_alike(view, ())
    return RowsTask(
        spec=step.spec,
        commit=step.commit,
        kind=kind,
        side=row.side,
        others=tuple(other.side for other in others),
    )


def _has_same_live_rows(old: Side, new: Side) -> bool:
    return has_same_rows(old.fragment, new.fragment) and has_same_deletions(old, new)


def _brings_nothing(step: _Step, old: Side, new: Side) -> bool:
    """Whether a fragment adds no rows: only a restore brings deleted rows back."""
    if not has_same_rows(old.fragment, new.fragment):
        return False
    return step.is_single or has_same_deletions(old, new)


def _version_files(snapshot: Snapshot, view: View) -> VersionFiles:
    source = snapshot
    return VersionFiles(
        version=snapshot.version,
        files=source.files,
        manifest_at=source.manifest_at,
        view=view.schema,
    )


def _spec(last: Schema, request: ChangeRequest) -> FeedSpec:
    taken = [name for name in last.names if name in FEED_NAMES]
    if taken:
        problem = (
            f"the table has a column {taken[0]}, which is a reserved column of the change feed"
        )
        raise InvalidRequestError(problem, column=taken[0])
    columns = request.columns
    if columns is not None:
        columns = tuple(name for name in columns if name not in FEED_NAMES)
    outputs = resolve_outputs(last, ScanRequest(columns=columns, batch_size=request.batch_rows))
    shown = [output for output in outputs if isinstance(output, ColumnOutput)]
    if len(shown) < len(outputs):
        name = next(o.name for o in outputs if o not in shown)
        raise InvalidRequestError(f"the change feed has no column {name}", column=name)
    # A column that was added later is null in older rows.
    fields = [output_field(output, last).with_nullable(True) for output in shown]
    return FeedSpec(
        last=last,
        outputs=tuple(shown),
        schema=pa.schema([*fields, *FEED_FIELDS], metadata=dict(last.metadata) or None),
        predicate=_predicate(last, request),
        kinds=request.kinds,
        batch_rows=request.batch_rows,
    )


def _predicate(last: Schema, request: ChangeRequest) -> Predicate | None:
    if request.filter is None:
        return None
    known = pa.schema([*storage_schema(described_schema(last)), *FEED_FIELDS])
    return predicate(request.filter, last, known, FEED_NAMES)
