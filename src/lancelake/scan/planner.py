"""Planning of scans: from a request to tasks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import assert_never

import pyarrow as pa

from lancelake import log
from lancelake.caches import RecentlyUsed
from lancelake.commit.snapshot import Snapshot
from lancelake.data.fragment_reader import META_NAMES, MetaColumn
from lancelake.errors import InvalidRequestError
from lancelake.expr.condition import (
    And,
    Comparison,
    Condition,
    Constant,
    Membership,
    Operator,
    Or,
    Path,
)
from lancelake.expr.predicate import Filter, Predicate, predicate
from lancelake.format.fragment import Fragment
from lancelake.format.fragment_list import FragmentList
from lancelake.format.ids import OFFSET_BITS
from lancelake.format.schema import Schema
from lancelake.scan.index_search.search import IndexSearch, search
from lancelake.scan.live_rows import live_rows
from lancelake.scan.plan import ScanPlan, ScanSpec, ScanTask, column_widths, explain
from lancelake.scan.request import (
    ColumnOutput,
    MetaOutput,
    Output,
    ScanRequest,
    expression_schema,
    output_schema,
    resolve_outputs,
)

MayHold = Callable[[int], bool]
Places = Mapping[Path, int]
"""Columns whose values include the fragment of a row, and the bits below its id."""


def fragment_test(condition: Condition, places: Places) -> MayHold | None:
    """Return a test whether a condition can be true in a fragment; None if it is always true."""
    match condition:
        case Constant():
            return None if condition.truth else lambda _: False
        case And():
            tests = [t for p in condition.parts if (t := fragment_test(p, places)) is not None]
            return (lambda i: all(test(i) for test in tests)) if tests else None
        case Or():
            parts = [fragment_test(part, places) for part in condition.parts]
            either = [test for test in parts if test is not None]
            if len(either) < len(parts):
                return None
            return lambda i: any(test(i) for test in either)
        case Comparison():
            return _comparison(condition, places)
        case Membership():
            bits = places.get(condition.column.path)
            if bits is None:
                return None
            ids = {value >> bits for value in condition.values.to_pylist()}
            return lambda i: i in ids
        case _:
            return None


def _comparison(condition: Comparison, places: Places) -> MayHold | None:
    bits = places.get(condition.column.path)
    if bits is None:
        return None
    number = condition.value.as_py() >> bits
    match condition.operator:
        case Operator.EQUAL:
            return lambda i: i == number
        case Operator.LESS | Operator.LESS_EQUAL:
            return lambda i: i <= number
        case Operator.GREATER | Operator.GREATER_EQUAL:
            return lambda i: i >= number
        case Operator.NOT_EQUAL:
            return None
        case _:
            assert_never(condition.operator)


# The codec prefetches within a fragment; a second fragment avoids the gap between two, and is
# decoded while filters are evaluated. More of them hide network latency.
_LOCAL_READAHEAD = 2
_REMOTE_READAHEAD = 4
# Opening a small file takes longer than reading it.
_SMALL_READAHEAD = 4
_SMALL_ROWS = 4096
_SAMPLED_FRAGMENTS = 16
_SHORT_FILTER = 1 << 12
_CACHED_FILTERS = 256

# A schema is kept with its predicates, so that no other gets its id.
_predicates: RecentlyUsed[tuple[str, int], tuple[Schema, Predicate]] = RecentlyUsed(_CACHED_FILTERS)


def plan(snapshot: Snapshot, request: ScanRequest) -> ScanPlan:
    """Plan a scan of one version."""
    schema = snapshot.manifest.schema
    wanted = resolve_outputs(schema, request)
    # Rows without columns are all equal, so there is nothing to sort.
    outputs = wanted + _sort_keys(wanted, snapshot, request) if wanted else ()
    valued = request.blob_values and any(
        isinstance(output, ColumnOutput) and output.stored_blobs(schema) for output in outputs
    )
    shown = _schema(snapshot, outputs)
    predicate = _predicate(snapshot, request)
    spec = ScanSpec(
        files=snapshot.files,
        manifest_at=snapshot.manifest_at,
        version=snapshot.manifest.version,
        table_schema=schema,
        widths=column_widths(schema),
        outputs=outputs,
        output_schema=shown,
        predicate=predicate,
        late=_late(request, outputs, predicate),
        batch_rows=request.batch_size,
        batch_readahead=request.batch_readahead,
        has_stable_row_ids=snapshot.manifest.has_stable_row_ids,
        include_deleted_rows=request.include_deleted_rows,
        remembers_small=request.remembers_small,
        valued_schema=_schema(snapshot, outputs, blob_values=True) if valued else None,
    )
    searched = _search_indices(snapshot, request, spec.predicate)
    is_used = searched is not None and (searched.is_helpful or request.fast_search)
    tasks, skip = _tasks(snapshot, request, spec, searched if is_used else None)
    planned = ScanPlan(
        spec=spec,
        tasks=tasks,
        skip=skip,
        limit=request.limit,
        order_by=request.order_by if wanted else (),
        schema=(
            shown
            if outputs == wanted and not valued
            else _schema(snapshot, wanted, blob_values=valued)
        ),
        fragment_readahead=request.fragment_readahead or _readahead(snapshot),
        strict_batch_size=request.strict_batch_size,
        index_search=searched,
    )
    if log.SCAN.isEnabledFor(logging.DEBUG):
        facts = {"table": snapshot.location.uri, "version": snapshot.version}
        log.SCAN.debug("%s", explain(planned).rstrip(), extra=facts)
    return planned


def _search_indices(
    snapshot: Snapshot, request: ScanRequest, predicate: Predicate | None
) -> IndexSearch | None:
    """Ask the indices about a filter; they do not know rows that were deleted before."""
    if predicate is None or not request.use_scalar_index or request.include_deleted_rows:
        return None
    ids = request.fragment_ids
    if ids is None and not snapshot.indices:
        # Not even the ids of the fragments are decoded.
        return None
    if ids is None:
        ids = tuple(FragmentList.of(snapshot.manifest.fragments).ids)
    return search(snapshot, predicate.condition, ids, asks_all=request.fast_search)


def _readahead(snapshot: Snapshot) -> int:
    if snapshot.files.root.scheme not in ("file", "memory"):
        return _REMOTE_READAHEAD
    return _SMALL_READAHEAD if _has_small_fragments(snapshot) else _LOCAL_READAHEAD


def _has_small_fragments(snapshot: Snapshot) -> bool:
    """Whether the first fragments are small; checking all would decode all."""
    fragments = snapshot.manifest.fragments
    if len(fragments) <= _SAMPLED_FRAGMENTS:
        return False
    sampled = islice(fragments, _SAMPLED_FRAGMENTS)
    return all((f.physical_rows or _SMALL_ROWS) < _SMALL_ROWS for f in sampled)


def chosen_fragments(snapshot: Snapshot, request: ScanRequest) -> Sequence[Fragment]:
    """Return the fragments of a request, in its order, or all."""
    if request.fragment_ids is None:
        return snapshot.manifest.fragments
    by_id = {f.id: f for f in snapshot.manifest.fragments}
    missing = [i for i in request.fragment_ids if i not in by_id]
    if missing:
        problem = f"fragment {missing[0]} is not part of this version"
        raise InvalidRequestError(problem, table=snapshot.files.root.uri, fragment=missing[0])
    return [by_id[i] for i in request.fragment_ids]


def _schema(
    snapshot: Snapshot, outputs: Sequence[Output], *, blob_values: bool = False
) -> pa.Schema:
    return output_schema(outputs, snapshot.manifest.schema, blob_values=blob_values)


def _predicate(snapshot: Snapshot, request: ScanRequest) -> Predicate | None:
    if request.filter is None:
        return None
    return parse_filter(request.filter, snapshot.manifest.schema)


def parse_filter(filter: Filter, schema: Schema) -> Predicate:
    """Parse a filter; short texts are cached, since programs repeat them."""
    if not isinstance(filter, str) or is_long(filter):
        return predicate(filter, schema, expression_schema(schema), META_NAMES)

    def parse() -> tuple[Schema, Predicate]:
        return schema, predicate(filter, schema, expression_schema(schema), META_NAMES)

    return _predicates.get((filter, id(schema)), parse)[1]


def is_long(filter: Filter) -> bool:
    """Whether a filter is a text that is parsed again at each use."""
    return isinstance(filter, str) and len(filter) > _SHORT_FILTER


def _late(
    request: ScanRequest, outputs: Sequence[Output], predicate: Predicate | None
) -> bool | None:
    """Whether to read outputs after filtering, or None to decide by selectivity.

    Columns of the filter are read before it, even when they are asked for late.
    """
    asked = request.late_materialization
    if isinstance(asked, tuple):
        tested = () if predicate is None else predicate.paths
        columns = [o.path for o in outputs if isinstance(o, ColumnOutput)]
        return any(path[0] in asked and path not in tested for path in columns)
    return asked


def _sort_keys(
    wanted: tuple[Output, ...], snapshot: Snapshot, request: ScanRequest
) -> tuple[Output, ...]:
    """Return outputs needed for sorting only."""
    present = {output.name for output in wanted}
    named = dict.fromkeys(o.column for o in request.order_by)
    missing = tuple(column for column in named if column not in present)
    if not missing:
        return ()
    return resolve_outputs(snapshot.manifest.schema, ScanRequest(columns=missing))


def _possible(
    snapshot: Snapshot, fragments: Sequence[Fragment], spec: ScanSpec
) -> Sequence[Fragment]:
    """Prune fragments without a row for which the predicate can be true."""
    if spec.predicate is None:
        return fragments
    addresses = [MetaColumn.ROW_ADDRESS.value]
    addresses += [] if snapshot.manifest.has_stable_row_ids else [MetaColumn.ROW_ID.value]
    own = spec.table_schema.names
    places: Places = {(name,): OFFSET_BITS for name in addresses if name not in own}
    may_hold = fragment_test(spec.predicate.condition, places)
    return fragments if may_hold is None else [f for f in fragments if may_hold(f.id)]


def _left(
    fragments: Sequence[Fragment], searched: IndexSearch, request: ScanRequest
) -> Sequence[Fragment]:
    """Leave out fragments without a row to read; what is left out is not decoded."""
    ids = fragments.ids if isinstance(fragments, FragmentList) else [f.id for f in fragments]
    return [
        fragments[place]
        for place, number in enumerate(ids)
        if number not in searched.empty and (number in searched.covered or not request.fast_search)
    ]


def _tasks(
    snapshot: Snapshot, request: ScanRequest, spec: ScanSpec, searched: IndexSearch | None
) -> tuple[tuple[ScanTask, ...], int]:
    """Return the tasks and how many of their first rows to skip."""
    fragments_asked = chosen_fragments(snapshot, request)
    fragments_asked = (
        fragments_asked if searched is None else _left(fragments_asked, searched, request)
    )
    fragments = _possible(snapshot, fragments_asked, spec)
    skip = request.offset or 0
    ranked = any(
        isinstance(o, MetaOutput) and o.meta is MetaColumn.ROW_OFFSET for o in spec.outputs
    )
    ranked = ranked or _filters_by_rank(spec.predicate)
    before = _ranks(snapshot) if ranked else {}
    by_count = request.filter is None and not request.order_by and not spec.include_deleted_rows
    left = request.limit
    tasks: list[ScanTask] = []
    for fragment in fragments:
        if by_count and left == 0:
            break
        rows = (
            live_rows(snapshot.files, snapshot.manifest_at, fragment)
            if by_count and (skip or left is not None)
            else None
        )
        if rows is not None and skip >= rows and not tasks:
            skip -= rows
            continue
        limit = None
        if rows is not None and left is not None:
            limit = min(rows, left + (0 if tasks else skip))
            left -= min(left, rows - (0 if tasks else skip))
        rows_found = None if searched is None else searched.found.get(fragment.id)
        if rows_found is not None and request.limit is not None and not request.order_by:
            limit = request.limit + skip
        task = ScanTask(
            spec=spec,
            fragment=fragment,
            live_before=before.get(fragment.id, 0),
            row_limit=limit,
            rows=None if rows_found is None else rows_found.rows,
            recheck=rows_found is None or not rows_found.is_exact,
        )
        tasks.append(task)
    return tuple(tasks), skip


def _filters_by_rank(condition: Predicate | None) -> bool:
    return condition is not None and (MetaColumn.ROW_OFFSET.value,) in condition.paths


def _ranks(snapshot: Snapshot) -> dict[int, int]:
    """Count the live rows before each fragment in scan order of the version."""
    before: dict[int, int] = {}
    total = 0
    for fragment in snapshot.manifest.fragments:
        before[fragment.id] = total
        total += live_rows(snapshot.files, snapshot.manifest_at, fragment)
    return before
