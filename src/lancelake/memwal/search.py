"""Text and vector searches of a view: rows that are not merged take part in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from lancelake.errors import InternalError, UnsupportedError, naming
from lancelake.expr.condition import Column, Membership
from lancelake.expr.predicate import Filter, joined, predicate
from lancelake.format.arrow_schema import public_schema, storage_schema
from lancelake.format.row_address import OFFSET_BITS
from lancelake.index.kind import ROW_ID
from lancelake.index.row_ids import BoolArray, U64Array
from lancelake.index.text.query import TextQuery
from lancelake.index.vector.top_rows import NearestRows
from lancelake.memwal.shape import live
from lancelake.memwal.view import MemWalView, SeenKeys
from lancelake.scan import stream
from lancelake.scan.nearest import DISTANCE, Nearest
from lancelake.scan.planner import chosen_fragments, plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.row_mask import AllowedRows
from lancelake.scan.take import take_at
from lancelake.scan.text_search.evaluate import TextSearch
from lancelake.scan.text_search.plan import SCORE, with_columns
from lancelake.scan.vector_search.flat import add_values
from lancelake.scan.vector_search.plan import VectorSearch, plan_vector_search

_OUTSIDE = np.uint64(0xFFFFFFFF << OFFSET_BITS)
"""Address of the first row that is not merged; no table has a fragment of this number."""
_LOW_WORD = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewSearch:
    """Rows that a search may return, and their columns."""

    view: MemWalView
    columns: tuple[str, ...] | None = None
    """Columns of the table, by default all."""
    filter: Filter | None = None
    """Only rows that match are searched."""

    def nearest(self, query: Nearest) -> pa.Table:
        """Return the nearest rows with their distances, the nearest first."""
        if query.has_several:
            raise UnsupportedError("a search of a view takes one query vector")
        with naming(self.view.base.location.uri, self.view.base.version):
            return self._nearest(query)

    def text(self, query: TextQuery, limit: int | None = None) -> pa.Table:
        """Return the rows that match with their scores, the best first."""
        with naming(self.view.base.location.uri, self.view.base.version):
            return self._text(query, limit)

    def _nearest(self, query: Nearest) -> pa.Table:
        unmerged = self._unmerged()
        request = ScanRequest(
            columns=self._names, filter=self.filter, prefilter=True, nearest=query
        )
        prepared = plan_vector_search(self.view.base, request, self._mask(unmerged.keys))
        search = prepared.finder
        if not isinstance(search, VectorSearch):
            raise InternalError("a vector search finds the nearest rows")
        with prepared.run() as reader:
            found = reader.read_all()
        flat = _flattened(unmerged.rows)
        near = NearestRows(1, query.k, query.within)
        if flat.num_rows:
            add_values(
                flat.column(search.target.path).combine_chunks(),
                np.arange(flat.num_rows, dtype=np.uint64),
                search.target.type,
                search.metric,
                search.target.type.query_matrix(query.queries),
                near,
            )
        ranked = near.result(0)
        distances = pa.array(ranked.distances, pa.float32())
        more = self._shown(unmerged.rows.take(pa.array(ranked.ids))).append_column(
            DISTANCE, distances
        )
        both = pa.concat_tables([found.select(more.column_names), more])
        order = pc.sort_indices(both, sort_keys=[(DISTANCE, "ascending")])
        return both.take(order.slice(0, query.k))

    def _text(self, query: TextQuery, limit: int | None) -> pa.Table:
        base = self.view.base
        unmerged = self._unmerged()
        outside = _OUTSIDE + np.arange(unmerged.rows.num_rows, dtype=np.uint64)
        search = TextSearch(
            snapshot=base,
            fragments=BitMap(f.id for f in chosen_fragments(base, ScanRequest())),
            allowed=self._allowed(unmerged.keys),
            others=_flattened(unmerged.rows).append_column(ROW_ID, pa.array(outside)),
        )
        ranked = search.rows(with_columns(base, query), limit).ranked(limit)
        is_outside = ranked.addresses >= _OUTSIDE
        places = np.empty(len(ranked.addresses), dtype=np.int64)
        inside = ranked.addresses[~is_outside]
        places[~is_outside] = np.arange(len(inside))
        rows = take_at(base, inside, ScanRequest(columns=self._names))
        places[is_outside] = len(inside) + (ranked.addresses[is_outside] - _OUTSIDE).astype(
            np.int64
        )
        both = pa.concat_tables([self._shown(rows), self._shown(unmerged.rows)])
        return both.take(pa.array(places)).append_column(SCORE, pa.array(ranked.scores))

    @property
    def _names(self) -> tuple[str, ...]:
        return self.view.shape.table.names if self.columns is None else self.columns

    def _shown(self, rows: pa.Table) -> pa.Table:
        shown = public_schema(self.view.shape.table.select(self._names))
        columns = [rows.column(name) for name in self._names]
        return pa.Table.from_arrays(columns, schema=shown)

    def _unmerged(self) -> _Unmerged:
        """Read the rows that are not merged, and all keys that they replace or delete."""
        shape = self.view.shape
        condition = None
        if self.filter is not None:
            condition = predicate(self.filter, shape.table, storage_schema(shape.table), ())
        rows, keys = [], []
        seen = SeenKeys(shape)
        for region in self.view.regions:
            for batch in self.view.unmerged(region, seen):
                keys.append(batch.select(shape.keys))
                kept = live(batch)
                rows.append(kept if condition is None else kept.filter(condition(kept)))
        schema = pa.schema(list(shape.arrow)[:-1])
        return _Unmerged(
            rows=pa.Table.from_batches(rows, schema=schema) if rows else schema.empty_table(),
            keys=pa.Table.from_batches(keys).combine_chunks() if keys else None,
        )

    def _replaced(self, keys: pa.Table | None, *, as_ids: bool) -> U64Array:
        """Return the addresses or ids of the table's rows that are replaced or deleted."""
        shape = self.view.shape
        if keys is None or not keys.num_rows:
            return np.zeros(0, dtype=np.uint64)
        conditions = [
            Membership(column=Column(path=(name,), dtype=values.type), values=pc.unique(values))
            for name, values in zip(shape.keys, shape.key_columns(keys), strict=True)
        ]
        request = ScanRequest(
            columns=shape.keys,
            filter=joined(conditions),
            with_row_id=as_ids,
            with_row_address=not as_ids,
        )
        wanted = shape.key_array(keys)
        found = [
            np.asarray(batch.column(batch.num_columns - 1), dtype=np.uint64)[
                np.asarray(pc.is_in(shape.key_array(batch), value_set=wanted))
            ]
            for batch in stream.run(plan(self.view.base, request))
        ]
        return np.concatenate([np.zeros(0, dtype=np.uint64), *found])

    def _mask(self, keys: pa.Table | None) -> AllowedRows | None:
        replaced = self._replaced(keys, as_ids=self.view.base.manifest.has_stable_row_ids)
        if not len(replaced):
            return None
        high = replaced >> np.uint64(_LOW_WORD)
        low = (replaced & np.uint64((1 << _LOW_WORD) - 1)).astype(np.uint32)
        return AllowedRows(None, {int(h): BitMap(low[high == h]) for h in np.unique(high)})

    def _allowed(self, keys: pa.Table | None) -> _Allowed | None:
        replaced = self._replaced(keys, as_ids=False)
        matching: U64Array | None = None
        if self.filter is not None:
            request = ScanRequest(columns=(), filter=self.filter, with_row_address=True)
            parts = [
                np.asarray(batch.column(0), dtype=np.uint64)
                for batch in stream.run(plan(self.view.base, request))
            ]
            matching = np.concatenate([np.zeros(0, dtype=np.uint64), *parts])
        if matching is None and not len(replaced):
            return None
        return _Allowed(replaced=replaced, matching=matching)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unmerged:
    rows: pa.Table
    keys: pa.Table | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Allowed:
    """Tests which rows of the table may be found."""

    replaced: U64Array
    matching: U64Array | None

    def __call__(self, addresses: U64Array) -> BoolArray:
        kept: BoolArray = ~np.isin(addresses, self.replaced)
        if self.matching is not None:
            kept &= np.isin(addresses, self.matching)
        return kept


def _flattened(rows: pa.Table) -> pa.Table:
    """Return rows with the parts of structs as columns of their own."""
    while any(pa.types.is_struct(field.type) for field in rows.schema):
        rows = rows.flatten()
    return rows
