"""Rows with scores or distances, in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
from pyroaring import FrozenBitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.data.fragment_reader import META_NAMES, MetaColumn
from lancelake.expr.bind import BoundExpression, bind
from lancelake.expr.evaluate import Evaluator
from lancelake.expr.predicate import Filter, Predicate, predicate
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FragmentId
from lancelake.format.row_address import by_fragment, fragment_of, offset_of
from lancelake.format.rowids import U64Array
from lancelake.scan.execute import kept_offsets
from lancelake.scan.index_search.sources import PerSnapshot
from lancelake.scan.plan import ScanMeasure, sort_step
from lancelake.scan.planner import plan
from lancelake.scan.request import DEFAULT_BATCH_ROWS, ScanRequest, SearchRequest, expression_schema
from lancelake.scan.stream import run, sort_batches
from lancelake.scan.task_rows import Mask, to_mask

_ADDRESS = MetaColumn.ROW_ADDRESS.value
_KEPT_SCHEMAS = 64
_schemas: PerSnapshot[dict[tuple[object, ...], pa.Schema]] = PerSnapshot(dict)


def rows_at(snapshot: Snapshot, addresses: U64Array, request: ScanRequest) -> pa.Table:
    """Return live rows at addresses, in their order, with their address as last column."""
    unique, inverse = np.unique(addresses, return_inverse=True)
    parts = by_fragment(unique)
    ids = tuple(FragmentId(number) for number in sorted(parts))
    scan = plan(snapshot, replace(request, with_row_address=True, fragment_ids=ids))
    tasks = tuple(task.matching(parts[task.fragment.id]) for task in scan.tasks)
    with run(replace(scan, tasks=tasks)) as reader:
        table = reader.read_all()
    at = table.column(table.num_columns - 1).to_numpy()
    order = np.argsort(at, kind="stable")
    return table.take(pa.array(order[np.searchsorted(at[order], unique)][inverse]))


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedRows:
    """Rows of a version that a search found, with the values that it computed for each."""

    snapshot: Snapshot
    addresses: U64Array
    scores: Mapping[str, pa.Array]

    def __len__(self) -> int:
        return len(self.addresses)

    def only(self, places: np.ndarray) -> SearchedRows:
        """Return the rows at these places."""
        rows = pa.array(places)
        return replace(
            self,
            addresses=self.addresses[places],
            scores={name: values.take(rows) for name, values in self.scores.items()},
        )

    def matching(self, filter: Filter) -> SearchedRows:
        """Return the rows that match a filter, which may use the computed columns."""
        schema = self.snapshot.manifest.schema
        fields = [pa.field(name, values.type) for name, values in self.scores.items()]
        shown = pa.schema([*expression_schema(schema), *fields])
        wanted = predicate(filter, schema, shown, (*META_NAMES, *self.scores))
        uses_scores = any(path[0] in self.scores for path in wanted.paths)
        is_match = self._by_value(wanted) if uses_scores else self._by_scan(wanted)
        return self.only(np.flatnonzero(is_match))

    def evaluated(self, expression: BoundExpression) -> pa.Array:
        """Return the value of an expression, which may use the computed columns, for each row."""
        return Evaluator(expression)(self._batch(expression.paths))

    def _by_value(self, wanted: Predicate) -> Mask:
        return to_mask(wanted(self._batch(wanted.paths)))

    def _by_scan(self, wanted: Predicate) -> Mask:
        parts = by_fragment(self.addresses)
        ids = tuple(FragmentId(number) for number in sorted(parts))
        request = ScanRequest(columns=(), filter=wanted, fragment_ids=ids, use_scalar_index=False)
        is_match = np.zeros(len(self.addresses), dtype=np.bool_)
        numbers, offsets = fragment_of(self.addresses), offset_of(self.addresses)
        for task in plan(self.snapshot, request).tasks:
            rows = FrozenBitMap(parts[task.fragment.id])
            matches = kept_offsets(replace(task, rows=rows, recheck=True))
            matching = np.frombuffer(matches.to_array(), dtype=np.uint32)
            is_match |= (numbers == task.fragment.id) & np.isin(offsets, matching)
        return is_match

    def _batch(self, paths: tuple[tuple[str, ...], ...]) -> pa.RecordBatch:
        """Return the columns of expressions, as one batch."""
        names = dict.fromkeys(path[0] for path in paths if path[0] not in self.scores)
        read = tuple(name for name in names if name != _ADDRESS)
        table = rows_at(self.snapshot, self.addresses, ScanRequest(columns=read))
        for name, values in self.scores.items():
            table = table.append_column(name, values)
        return table.combine_chunks().to_batches()[0] if len(table) else _empty(table.schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOutput:
    """Columns of the result of a search: stored and computed ones in the requested order."""

    names: tuple[str, ...]
    request: ScanRequest
    late: FrozenMap[str, BoundExpression]
    """Expressions that use computed columns."""

    @staticmethod
    def of(
        snapshot: Snapshot, request: SearchRequest, first: tuple[str, ...], score: str
    ) -> SearchOutput:
        """Resolve the columns of a request.

        Columns `first` are in front of the others; the column `score` is behind the requested
        ones unless it is among them, or not wanted.
        """
        metas = [MetaColumn.ROW_ID.value] if request.with_row_id else []
        metas += [_ADDRESS] if request.with_row_address else []
        schema = snapshot.manifest.schema
        columns = schema.names if request.columns is None else list(request.columns)
        late: dict[str, BoundExpression] = {}
        stored: tuple[str, ...] | FrozenMap[str, str]
        if isinstance(request.columns, FrozenMap):
            bound = {
                name: bind(sql, schema, extra_names=(*META_NAMES, *first, score))
                for name, sql in request.columns.items()
            }
            computed = {*first, score}
            late = {n: b for n, b in bound.items() if any(p[0] in computed for p in b.paths)}
            stored = FrozenMap({n: s for n, s in request.columns.items() if n not in late})
        else:
            stored = tuple(name for name in columns if name not in (score, *first))
        if score not in columns and (request.columns is None or not request.hides_scores):
            columns = [*columns, score]
        names = [*first, *(n for n in columns if n not in first and n not in metas), *metas]
        return SearchOutput(
            names=tuple(names), request=_stored_request(request, stored), late=FrozenMap(late)
        )

    def schema(self, snapshot: Snapshot, scores: Mapping[str, pa.DataType]) -> pa.Schema:
        """Return the Arrow schema of the result, kept with the snapshot."""
        if self.late:
            return self._plan_schema(snapshot, scores)
        schemas = _schemas(snapshot)
        key = self.names, self.request, tuple(scores.items())
        schema = schemas.get(key)
        if schema is None:
            if len(schemas) >= _KEPT_SCHEMAS:
                schemas.clear()
            schema = schemas[key] = self._plan_schema(snapshot, scores)
        return schema

    def _plan_schema(self, snapshot: Snapshot, scores: Mapping[str, pa.DataType]) -> pa.Schema:
        none = SearchedRows(
            snapshot=snapshot,
            addresses=np.zeros(0, dtype=np.uint64),
            scores={name: pa.array([], dtype) for name, dtype in scores.items()},
        )
        return self.table(none).schema

    def table(self, rows: SearchedRows, also: tuple[str, ...] = ()) -> pa.Table:
        """Read the columns of rows, and further columns `also`."""
        table = rows_at(rows.snapshot, rows.addresses, self.request)
        for name, values in rows.scores.items():
            table = table.append_column(_score_field(name, values.type), values)
        for name, expression in self.late.items():
            table = table.append_column(name, rows.evaluated(expression))
        missing = tuple(name for name in also if name not in table.column_names)
        if missing:
            more = rows_at(rows.snapshot, rows.addresses, ScanRequest(columns=missing))
            for name in missing:
                table = table.append_column(more.schema.field(name), more.column(name))
        wanted = dict.fromkeys([*self.names, *also])
        return table.select(list(wanted))


def _score_field(name: str, dtype: pa.DataType) -> pa.Field:
    return pa.field(name, dtype, nullable=not pa.types.is_integer(dtype))


def _stored_request(
    request: ScanRequest, columns: tuple[str, ...] | FrozenMap[str, str]
) -> ScanRequest:
    return ScanRequest(
        columns=columns,
        with_row_id=request.with_row_id,
        with_row_address=True,
        blob_values=request.blob_values,
        json_binary=request.json_binary,
        batch_size=request.batch_size,
    )


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)


class RankedRowsFinder(Protocol):
    """What distinguishes one kind of search from another."""

    @property
    def num_fragments(self) -> int:
        """Number of fragments that are scanned."""

    def search(self) -> SearchedRows:
        """Search, and return the rows of the result by rank."""

    def steps(self, *, verbose: bool, measure: ScanMeasure | None) -> list[str]:
        """Describe the steps of the search, the last one first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedSearch:
    """A search of one version, ready to run."""

    request: SearchRequest
    finder: RankedRowsFinder
    output: SearchOutput
    schema: pa.Schema

    @staticmethod
    def of(
        snapshot: Snapshot,
        request: SearchRequest,
        finder: RankedRowsFinder,
        computed: Mapping[str, pa.DataType],
    ) -> RankedSearch:
        """Prepare a search with these computed columns, of which the last is the score."""
        *first, score = computed
        output = SearchOutput.of(snapshot, request, tuple(first), score)
        schema = output.schema(snapshot, computed)
        return RankedSearch(request=request, finder=finder, output=output, schema=schema)

    @property
    def num_fragments(self) -> int:
        """Number of fragments to scan."""
        return self.finder.num_fragments

    def run(self, measure: ScanMeasure | None = None) -> pa.RecordBatchReader:
        """Search, and stream the rows found, the best first unless another order is asked for."""
        search = self.finder.search
        result = search() if measure is None else measure.searched(search)
        keys = self.request.order_by
        rows = self.request.batch_size or DEFAULT_BATCH_ROWS
        table = self.output.table(result, tuple(key.column for key in keys))
        batches = table.to_batches(max_chunksize=rows)
        if keys and len(table):
            ordered = sort_batches(table.schema, iter(batches), keys, batch_rows=rows)
            batches = [batch.select(self.schema.names) for batch in ordered]
        returned: Iterator[pa.RecordBatch] = (batch.cast(self.schema) for batch in batches)
        if measure is not None:
            returned = measure.returned(returned)
        return pa.RecordBatchReader.from_batches(self.schema, returned)

    def count(self) -> int:
        """Search, and count the rows found."""
        return len(self.finder.search())

    def explain(self, *, verbose: bool = False, measure: ScanMeasure | None = None) -> str:
        """Describe the steps, the last one first."""
        request = self.request
        steps = [f"Output: {', '.join(self.schema.names) or '(no columns)'}"]
        if request.order_by:
            steps.append(sort_step(request.order_by))
        if request.limit is not None or request.offset:
            steps.append(f"Limit: skip={request.offset or 0}, fetch={request.limit}")
        if request.filter is not None and not request.prefilter:
            steps.append("Filter: after the search")
        steps += self.finder.steps(verbose=verbose, measure=measure)
        return "\n".join("  " * depth + step for depth, step in enumerate(steps)) + "\n"
