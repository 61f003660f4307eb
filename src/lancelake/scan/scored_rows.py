"""Output of a search: rows at some addresses, with columns that the search computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyroaring import FrozenBitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.data.row_meta import META_NAMES, MetaColumn
from lancelake.expr.bind import BoundExpression, bind
from lancelake.expr.engine import Evaluator
from lancelake.expr.predicate import Filter, Predicate, predicate
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FragmentId
from lancelake.format.row_address import by_fragment, fragment_of, offset_of
from lancelake.format.rowids.segment import U64Array
from lancelake.scan.execute import kept_offsets
from lancelake.scan.live_rows import Mask, to_mask
from lancelake.scan.outputs import expression_schema
from lancelake.scan.per_snapshot import PerSnapshot
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.stream import run

_ADDRESS = MetaColumn.ROW_ADDRESS.value
_KEPT_SCHEMAS = 64
_schemas: PerSnapshot[dict[tuple[object, ...], pa.Schema]] = PerSnapshot(dict)


def rows_at(snapshot: Snapshot, addresses: U64Array, request: ScanRequest) -> pa.Table:
    """Return live rows at addresses, in their order, with their address as last column."""
    unique, inverse = np.unique(addresses, return_inverse=True)
    parts = by_fragment(unique)
    chosen = tuple(FragmentId(number) for number in sorted(parts))
    scan = plan(snapshot, replace(request, with_row_address=True, fragment_ids=chosen))
    tasks = tuple(task.matching(parts[task.fragment.id]) for task in scan.tasks)
    with run(replace(scan, tasks=tasks)) as reader:
        found = reader.read_all()
    at = found.column(found.num_columns - 1).to_numpy()
    order = np.argsort(at, kind="stable")
    return found.take(pa.array(order[np.searchsorted(at[order], unique)][inverse]))


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
        chosen = pa.array(places)
        return replace(
            self,
            addresses=self.addresses[places],
            scores={name: values.take(chosen) for name, values in self.scores.items()},
        )

    def matching(self, filter: Filter) -> SearchedRows:
        """Return the rows that match a filter, which may use the computed columns."""
        schema = self.snapshot.manifest.schema
        fields = [pa.field(name, values.type) for name, values in self.scores.items()]
        shown = pa.schema([*expression_schema(schema), *fields])
        wanted = predicate(filter, schema, shown, (*META_NAMES, *self.scores))
        uses_scores = any(path[0] in self.scores for path in wanted.paths)
        kept = self._by_value(wanted) if uses_scores else self._by_scan(wanted)
        return self.only(np.flatnonzero(kept))

    def evaluated(self, expression: BoundExpression) -> pa.Array:
        """Return the value of an expression, which may use the computed columns, for each row."""
        return Evaluator(expression)(self._batch(expression.paths))

    def _by_value(self, wanted: Predicate) -> Mask:
        return to_mask(wanted(self._batch(wanted.paths)))

    def _by_scan(self, wanted: Predicate) -> Mask:
        parts = by_fragment(self.addresses)
        chosen = tuple(FragmentId(number) for number in sorted(parts))
        request = ScanRequest(
            columns=(), filter=wanted, fragment_ids=chosen, use_scalar_index=False
        )
        kept = np.zeros(len(self.addresses), dtype=np.bool_)
        numbers, offsets = fragment_of(self.addresses), offset_of(self.addresses)
        for task in plan(self.snapshot, request).tasks:
            rows = FrozenBitMap(parts[task.fragment.id])
            found = kept_offsets(replace(task, rows=rows, recheck=True))
            matching = np.frombuffer(found.to_array(), dtype=np.uint32)
            kept |= (numbers == task.fragment.id) & np.isin(offsets, matching)
        return kept

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
        snapshot: Snapshot, request: ScanRequest, first: tuple[str, ...], score: str
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
            return self._planned_schema(snapshot, scores)
        known = _schemas(snapshot)
        key = self.names, self.request, tuple(scores.items())
        found = known.get(key)
        if found is None:
            if len(known) >= _KEPT_SCHEMAS:
                known.clear()
            found = known[key] = self._planned_schema(snapshot, scores)
        return found

    def _planned_schema(self, snapshot: Snapshot, scores: Mapping[str, pa.DataType]) -> pa.Schema:
        none = SearchedRows(
            snapshot=snapshot,
            addresses=np.zeros(0, dtype=np.uint64),
            scores={name: pa.array([], dtype) for name, dtype in scores.items()},
        )
        return self.table(none).schema

    def table(self, found: SearchedRows, also: tuple[str, ...] = ()) -> pa.Table:
        """Read the columns of rows, and further columns `also`."""
        table = rows_at(found.snapshot, found.addresses, self.request)
        for name, values in found.scores.items():
            table = table.append_column(_score_field(name, values.type), values)
        for name, expression in self.late.items():
            table = table.append_column(name, found.evaluated(expression))
        missing = tuple(name for name in also if name not in table.column_names)
        if missing:
            more = rows_at(found.snapshot, found.addresses, ScanRequest(columns=missing))
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
