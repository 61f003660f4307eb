"""Plan of a change feed: from a request to tasks, and the columns they deliver."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lancelake.commit.snapshot import AtVersion, Snapshot
from lancelake.data.fragment_reader import MetaColumn
from lancelake.errors import InvalidRequestError, SchemaMismatchError, VersionNotFoundError
from lancelake.expr.predicate import Predicate, predicate
from lancelake.feed.changed_rows import execute
from lancelake.feed.request import (
    FEED_FIELDS,
    FEED_NAMES,
    ROW_ID,
    ChangeFeedPlan,
    ChangeKind,
    ChangeRequest,
    ChangeTask,
    Commit,
    ComparedFragment,
    FeedSpec,
    FragmentSpans,
    PairTask,
    Point,
    RowsTask,
    Side,
    VersionFiles,
    VersionRange,
    candidates,
    differing,
    ensure_row_ids,
    has_same_deletions,
    has_same_rows,
    needed_columns,
    rewritten_columns,
    version_range,
)
from lancelake.format import operations as ops
from lancelake.format import rowids
from lancelake.format.arrow_schema import storage_field, storage_schema
from lancelake.format.fragment import ExternalFile, Fragment, Sequenced
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FieldId
from lancelake.format.logical_types import described, described_schema
from lancelake.format.rowids import UNKNOWN_VERSION
from lancelake.format.schema import Field, Schema
from lancelake.scan.planner import plan
from lancelake.scan.request import ColumnOutput, ScanRequest, output_field, resolve_outputs
from lancelake.scan.stream import run

_CREATED, _UPDATED = MetaColumn.CREATED_AT.value, MetaColumn.LAST_UPDATED_AT.value


def inserted_rows(snapshot: Snapshot, begin: int, end: int) -> pa.RecordBatchReader:
    """Stream the rows of a version that were created after `begin`, up to and including `end`."""
    condition = f"{_CREATED} > {begin} AND {_CREATED} <= {end}"
    touched = [f for f in _fragments(snapshot) if _has_run(f.created_at_versions, begin, end)]
    return _scan(snapshot, condition, touched)


def updated_rows(snapshot: Snapshot, begin: int, end: int) -> pa.RecordBatchReader:
    """Stream the rows of `begin` that were last updated after it, up to and including `end`."""
    changed = f"{_UPDATED} > {begin} AND {_UPDATED} <= {end}"
    touched = [f for f in _fragments(snapshot) if _has_run(f.last_updated_at_versions, begin, end)]
    return _scan(snapshot, f"{_CREATED} <= {begin} AND {changed}", touched)


def deleted_row_ids(snapshot: Snapshot, begin: int, end: int) -> pa.RecordBatchReader:
    """Stream the ids of rows that are in version `begin` and not in version `end`."""
    request = ChangeRequest(columns=(), kinds=frozenset({ChangeKind.DELETE}), is_net=True)
    planned = plan_changes(snapshot, AtVersion(begin), AtVersion(end), request)
    batches = (batch.select([ROW_ID]) for task in planned.tasks for batch in execute(task))
    schema = pa.schema([planned.schema.field(ROW_ID)])
    return pa.RecordBatchReader.from_batches(schema, batches)


def _fragments(snapshot: Snapshot) -> Sequence[Fragment]:
    ensure_row_ids(snapshot)
    return snapshot.manifest.fragments


def _has_run(versions: Sequenced, begin: int, end: int) -> bool:
    """Whether a row of a fragment may have a version in the range."""
    match versions:
        case None:
            return begin < UNKNOWN_VERSION <= end
        case ExternalFile():
            return True
        case bytes() as data:
            versions_of_rows = {version for _, version in rowids.decode_versions(data)}
            return any(begin < version <= end for version in versions_of_rows)


def _scan(
    snapshot: Snapshot, condition: str, fragments: Sequence[Fragment]
) -> pa.RecordBatchReader:
    request = ScanRequest(
        columns=(*snapshot.manifest.schema.names, ROW_ID, _CREATED, _UPDATED),
        filter=condition,
        fragment_ids=tuple(f.id for f in fragments),
    )
    return run(plan(snapshot, request))


Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Where a field of the last version is in another version, or was when it last existed."""

    is_there: bool
    id: FieldId | None
    path: Path
    logical_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The last version's columns in another version.

    `schema` has the names and the structure of the last version with the ids and the types of this
    one; fields that it lacks have ids that no file contains. `unlike` are columns of another kind.
    """

    schema: Schema
    lacking: frozenset[FieldId]
    unlike: frozenset[str]
    traces: FrozenMap[FieldId, Trace]


def own_view(last: Schema) -> View:
    """Return the view of the last version itself."""
    traces = {
        field.id: Trace(is_there=True, id=field.id, path=path, logical_type=field.logical_type)
        for path, field in _paths(last)
    }
    return View(schema=last, lacking=frozenset(), unlike=frozenset(), traces=FrozenMap(traces))


def view_before(
    last: Schema, after: View, before: Schema, *, operation: ops.Operation | None
) -> View:
    """Return the view of the version before, given the operation between the two."""
    by_path = dict(_paths(before))
    path_of = {field.id: path for path, field in by_path.items()}
    traces = {}
    for number, trace in after.traces.items():
        field_id = _find(trace, path_of, by_path, after, operation)
        if field_id is not None:
            path = path_of[field_id]
            kind = by_path[path].logical_type
            traces[number] = Trace(is_there=True, id=field_id, path=path, logical_type=kind)
        else:
            last_id = None if isinstance(operation, ops.Overwrite) else trace.id
            traces[number] = replace(trace, is_there=False, id=last_id)
    return _view(last, before, FrozenMap(traces))


def _find(
    trace: Trace,
    path_of: dict[FieldId, Path],
    by_path: dict[Path, Field],
    after: View,
    operation: ops.Operation | None,
) -> FieldId | None:
    by_id = trace.id if trace.id in path_of else None
    named = by_path.get(trace.path)
    if not trace.is_there:
        # The id of a dropped column may be assigned again, but rarely with the same name.
        if named is None or named.id != trace.id or named.logical_type != trace.logical_type:
            return None
        return by_id
    by_name = None if named is None else named.id
    if isinstance(operation, ops.Overwrite):
        return by_name
    if operation is None or isinstance(operation, ops.Restore):
        # Ids may belong to columns that an overwrite between the two replaced.
        return by_id if by_name is None else by_name
    if by_id is not None or by_name is None:
        return by_id
    # A column of another type replaced one with the same name.
    replaced = all(t.id != by_name for t in after.traces.values())
    return by_name if replaced else None


def _view(last: Schema, before: Schema, traces: FrozenMap[FieldId, Trace]) -> View:
    by_id = before.by_id()
    fresh = max(last.max_field_id, before.max_field_id) + 1
    lacking: set[FieldId] = set()
    unlike: set[str] = set()

    def absent(field: Field) -> Field:
        unused = FieldId(fresh + field.id)
        lacking.add(field.id)
        return replace(field, id=unused, children=tuple(map(absent, field.children)))

    def see(field: Field, top: str, parent: Field | None) -> Field:
        trace = traces[field.id]
        source = by_id.get(trace.id) if trace.is_there and trace.id is not None else None
        if source is None or (parent is not None and source not in parent.children):
            return absent(field)
        if not _is_castable(source, field):
            unlike.add(top)
            return absent(field)
        children = tuple(see(child, top, source) for child in field.children)
        return replace(
            field,
            id=source.id,
            logical_type=source.logical_type,
            metadata=source.metadata
            if source.logical_type != field.logical_type
            else field.metadata,
            dictionary=source.dictionary,
            encoding=source.encoding,
            children=children,
        )

    fields = tuple(see(field, field.name, None) for field in last.fields)
    return View(
        schema=replace(last, fields=fields),
        lacking=frozenset(lacking),
        unlike=frozenset(unlike),
        traces=traces,
    )


def _is_castable(source_field: Field, field: Field) -> bool:
    """Whether values of one field can be cast to another, as far as their types show."""
    if source_field.logical_type == field.logical_type:
        return _kind(source_field) == _kind(field)
    if source_field.children or field.children or _kind(source_field) != _kind(field):
        return False
    source, target = (storage_field(described(f)).type for f in (source_field, field))
    try:
        pa.array([], source).cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return True


def _kind(field: Field) -> tuple[bool, bool, bool, bool, str | None]:
    blobs = field.is_blob_v1, field.is_blob_v2
    return (field.is_json, *blobs, field.is_packed, field.extension_name)


def _paths(schema: Schema) -> Iterator[tuple[Path, Field]]:
    for field in schema.fields:
        yield from _below((), field)


def _below(parents: Path, field: Field) -> Iterator[tuple[Path, Field]]:
    path = (*parents, field.name)
    yield path, field
    for child in field.children:
        yield from _below(path, child)


_UPDATES = frozenset({ChangeKind.UPDATE_BEFORE, ChangeKind.UPDATE_AFTER})


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
    operation: ops.Operation | None

    @property
    def commit(self) -> Commit:
        """The version that this step created."""
        manifest = self.after.manifest
        return Commit(version=manifest.version, timestamp_ns=manifest.timestamp_ns)

    @property
    def is_single(self) -> bool:
        """Whether exactly one known change separates the versions."""
        return self.operation is not None and not isinstance(self.operation, ops.Restore)

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


def _operation(snapshot: Snapshot) -> ops.Operation | None:
    transaction = snapshot.transaction
    if transaction is None or isinstance(transaction.operation, ops.UnknownOperation):
        return None
    return transaction.operation


def _older(
    spec: FeedSpec, view: View, before: Snapshot | None, operation: ops.Operation | None
) -> View:
    if before is None:
        return view
    return view_before(spec.last, view, before.manifest.schema, operation=operation)


def _tasks(step: _Step) -> Iterator[ChangeTask]:
    operation, kinds = step.operation, step.spec.kinds
    if isinstance(operation, ops.Rewrite):
        return
    gone, come = _candidates(step)
    is_replaced = isinstance(operation, ops.Overwrite)
    olds, news = (FragmentSpans(() if is_replaced else part) for part in (gone, come))
    if ChangeKind.DELETE in kinds and not isinstance(operation, ops.Append):
        yield from _deletes(step, gone, news)
    if kinds & _UPDATES and not isinstance(operation, ops.Append | ops.Delete):
        yield from _updates(step, gone, news)
    if ChangeKind.INSERT in kinds and not isinstance(operation, ops.Delete):
        yield from _inserts(step, come, olds)


def _candidates(step: _Step) -> tuple[list[ComparedFragment], list[ComparedFragment]]:
    after = _version_files(step.after, step.view_after)
    if step.before is None:
        return [], candidates(after, step.after.manifest.fragments)
    before = _version_files(step.before, step.view_before)
    old, new = step.before.manifest.fragments, step.after.manifest.fragments
    if isinstance(step.operation, ops.Overwrite):
        return candidates(before, old), candidates(after, new)
    last = step.spec.last if step.has_added_columns else None
    return differing(before, old, after, new, last=last)


def _deletes(
    step: _Step, gone: list[ComparedFragment], news: FragmentSpans
) -> Iterator[ChangeTask]:
    for old in gone:
        others = news.overlapping(old)
        if any(_has_same_live_rows(old.side, new.side) for new in others):
            continue
        yield _rows_task(step, ChangeKind.DELETE, old, others, step.view_before)


def _inserts(
    step: _Step, come: list[ComparedFragment], olds: FragmentSpans
) -> Iterator[ChangeTask]:
    for new in come:
        others = olds.overlapping(new)
        if any(_adds_no_rows(step, old.side, new.side) for old in others):
            continue
        yield _rows_task(step, ChangeKind.INSERT, new, others, step.view_after)


def _updates(
    step: _Step, gone: list[ComparedFragment], news: FragmentSpans
) -> Iterator[ChangeTask]:
    for old in gone:
        for new in news.overlapping(old):
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
                trusts_marks=step.is_single,
                # A compaction moves rows without marking or changing them.
                compares_unmarked=in_place or step.is_single or step.has_added_columns,
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


def _adds_no_rows(step: _Step, old: Side, new: Side) -> bool:
    """Whether a fragment adds no rows: only a restore brings deleted rows back."""
    if not has_same_rows(old.fragment, new.fragment):
        return False
    return step.is_single or has_same_deletions(old, new)


def _version_files(snapshot: Snapshot, view: View) -> VersionFiles:
    return VersionFiles(
        version=snapshot.version,
        files=snapshot.files,
        manifest_at=snapshot.manifest_at,
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
    columns_of_table = [output for output in outputs if isinstance(output, ColumnOutput)]
    if len(columns_of_table) < len(outputs):
        name = next(o.name for o in outputs if o not in columns_of_table)
        raise InvalidRequestError(f"the change feed has no column {name}", column=name)
    # A column that was added later is null in older rows.
    fields = [output_field(output, last).with_nullable(True) for output in columns_of_table]
    return FeedSpec(
        last=last,
        outputs=tuple(columns_of_table),
        schema=pa.schema([*fields, *FEED_FIELDS], metadata=dict(last.metadata) or None),
        predicate=_predicate(last, request),
        kinds=request.kinds,
        batch_rows=request.batch_rows,
    )


def _predicate(last: Schema, request: ChangeRequest) -> Predicate | None:
    if request.filter is None:
        return None
    columns = pa.schema([*storage_schema(described_schema(last)), *FEED_FIELDS])
    return predicate(request.filter, last, columns, FEED_NAMES)
