"""Searches and lookups by key over a view."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from lancelake import errors
from lancelake.commit.snapshot import Snapshot
from lancelake.data.codec.index_file import SegmentFolder
from lancelake.data.fragment_reader import known_deletions, physical_rows
from lancelake.expr.condition import Column, Membership
from lancelake.expr.predicate import Filter, joined, predicate
from lancelake.format import frozen, ids, row_address
from lancelake.format.arrow_schema import public_schema, storage_schema
from lancelake.format.memwal import wal_files, wal_keys
from lancelake.index.kind import ROW_ID, SegmentFacts
from lancelake.index.row_sets import BoolArray, U64Array
from lancelake.index.scalar.btree.build import LOOKUP_FILE
from lancelake.index.scalar.btree.kind import BTreeSegment
from lancelake.index.text.text_query import TextQuery
from lancelake.index.vector.vectors import NearestRows
from lancelake.memwal.generations import key_values, open_generation, read_generation
from lancelake.memwal.shape import RowShape, live
from lancelake.memwal.view import MemWalView, PinnedView, SeenKeys
from lancelake.scan import planner, row_lookup, stream
from lancelake.scan import request as requests
from lancelake.scan.search.prepared import fuse, fused_scores
from lancelake.scan.search.text import SCORE, with_columns
from lancelake.scan.search.text_index import TextSearch
from lancelake.scan.search.vector_search import VectorSearch, add_values, plan_vector_search
from lancelake.storage.table_files import FileAt

_OUTSIDE = np.uint64(0xFFFFFFFF << ids.OFFSET_BITS)
"""Address of the first row that is not merged; no table has a fragment of this number."""
_OPEN_SEARCHES = 4


@dataclass(frozen=True, kw_only=True)
class ViewSearch:
    """Rows that a search may return, and their columns.

    What searches have in common is read once: an object may be used for many of them.
    """

    view: MemWalView
    columns: tuple[str, ...] | None = None
    """Columns of the table, by default all."""
    filter: Filter | None = None
    """Only rows that match are searched."""

    def nearest(self, query: requests.Nearest) -> pa.Table:
        """Return the nearest rows with their distances, the nearest first.

        With several queries, the column `query_index` has the number of the query.
        """
        with errors.naming(self.view.base.location.uri, self.view.base.version):
            return self._nearest(query)

    def text(self, query: TextQuery, limit: int | None = None) -> pa.Table:
        """Return the rows that match with their scores, the best first."""
        with errors.naming(self.view.base.location.uri, self.view.base.version):
            return self._text(query, limit)

    def search(self, request: requests.SearchRequest) -> pa.Table:
        """Return the best rows of a vector search, a text search, or both fused.

        The result has the scores that a search of a version has. The columns and the filter of the
        request are not used.
        """
        ensure_searchable(with_row_id=request.with_row_id, prefilter=request.prefilter)
        limited, count = request.limited(), request.rows_per_search
        nearest, text = limited.nearest, limited.text
        if nearest is None:
            return self.text(cast("TextQuery", text), count)
        if text is None:
            return self.nearest(nearest)
        whole = replace(self, columns=self.view.shape.table.names)
        return self._fused(request, whole.nearest(nearest), whole.text(text, count))

    def _fused(
        self, request: requests.SearchRequest, near: pa.Table, matching: pa.Table
    ) -> pa.Table:
        shape = self.view.shape
        keys = [shape.key_array(near), shape.key_array(matching)]
        codes = pa.concat_arrays(keys).dictionary_encode().indices.to_numpy().astype(np.uint64)
        fused = fuse(
            request.fusion or requests.ReciprocalRankFusion(),
            near=codes[: near.num_rows],
            distances=near.column(requests.DISTANCE).to_numpy(),
            matching=codes[near.num_rows :],
            scores=matching.column(SCORE).to_numpy(),
        ).first(request.k)
        places = np.where(fused.by_vector >= 0, fused.by_vector, near.num_rows + fused.by_text)
        both = pa.concat_tables([self._shown(near), self._shown(matching)])
        scores = fused_scores(fused, near, matching)
        found = both.take(pa.array(places))
        return pa.Table.from_arrays(
            [*found.columns, *scores.values()], names=[*found.column_names, *scores]
        )

    def _nearest(self, query: requests.Nearest) -> pa.Table:
        unmerged = self._unmerged
        request = requests.SearchRequest(columns=self._names, filter=self.filter, nearest=query)
        prepared = plan_vector_search(self.view.base, request, self._mask)
        search = prepared.finder
        if not isinstance(search, VectorSearch):
            raise errors.InternalError("a vector search finds the nearest rows")
        with prepared.run() as reader:
            found = reader.read_all()
        flat = _flattened(unmerged.rows)
        near = NearestRows(len(query.queries) if search.is_batch else 1, query.k, query.within)
        if flat.num_rows:
            add_values(
                flat.column(search.target.path).combine_chunks(),
                np.arange(flat.num_rows, dtype=np.uint64),
                search.target.type,
                search.metric,
                search.target.type.query_matrix(query.queries),
                near,
            )
        ranked = [near.result(place) for place in range(near.queries)]
        more = self._shown(
            unmerged.rows.take(pa.array(np.concatenate([r.ids for r in ranked])))
        ).append_column(
            requests.DISTANCE, pa.array(np.concatenate([r.distances for r in ranked]), pa.float32())
        )
        if not search.is_batch:
            both = pa.concat_tables([found.select(more.column_names), more])
            order = pc.sort_indices(both, sort_keys=[(requests.DISTANCE, "ascending")])
            return both.take(order.slice(0, query.k))
        places = np.repeat(np.arange(len(ranked)), [len(r.ids) for r in ranked])
        more = more.append_column(
            found.schema.field(requests.QUERY_INDEX), pa.array(places, pa.int32())
        )
        return _first_of_each(pa.concat_tables([found.select(more.column_names), more]), query.k)

    def _text(self, query: TextQuery, limit: int | None) -> pa.Table:
        base = self.view.base
        unmerged = self._unmerged
        outside = _OUTSIDE + np.arange(unmerged.rows.num_rows, dtype=np.uint64)
        search = TextSearch(
            snapshot=base,
            fragments=BitMap(f.id for f in planner.chosen_fragments(base, requests.ScanRequest())),
            allowed=self._allowed,
            others=_flattened(unmerged.rows).append_column(ROW_ID, pa.array(outside)),
        )
        ranked = search.rows(with_columns(base, query), limit).ranked(limit)
        is_outside = ranked.addresses >= _OUTSIDE
        places = np.empty(len(ranked.addresses), dtype=np.int64)
        inside = ranked.addresses[~is_outside]
        places[~is_outside] = np.arange(len(inside))
        rows = row_lookup.take_at(base, inside, requests.ScanRequest(columns=self._names))
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

    @frozen.computed_once
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

    def _replaced(self, *, as_ids: bool) -> U64Array:
        """Return the addresses or ids of the table's rows that are replaced or deleted."""
        shape, keys = self.view.shape, self._unmerged.keys
        if keys is None or not keys.num_rows:
            return np.zeros(0, dtype=np.uint64)
        conditions = [
            Membership(column=Column(path=(name,), dtype=values.type), values=pc.unique(values))
            for name, values in zip(shape.keys, shape.key_columns(keys), strict=True)
        ]
        request = requests.ScanRequest(
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
            for batch in stream.run(planner.plan(self.view.base, request))
        ]
        return np.concatenate([np.zeros(0, dtype=np.uint64), *found])

    @frozen.computed_once
    def _mask(self) -> row_lookup.AllowedRows | None:
        replaced = self._replaced(as_ids=self.view.base.manifest.has_stable_row_ids)
        if not len(replaced):
            return None
        return row_lookup.AllowedRows(None, row_address.by_fragment(replaced))

    @frozen.computed_once
    def _allowed(self) -> _Allowed | None:
        replaced = self._replaced(as_ids=False)
        matching: U64Array | None = None
        if self.filter is not None:
            request = requests.ScanRequest(columns=(), filter=self.filter, with_row_address=True)
            parts = [
                np.asarray(batch.column(0), dtype=np.uint64)
                for batch in stream.run(planner.plan(self.view.base, request))
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


def ensure_searchable(*, with_row_id: bool, prefilter: bool) -> None:
    """Refuse what a search with rows that are not merged cannot do."""
    if with_row_id:
        raise errors.UnsupportedError("rows that are not merged have no row id")
    if not prefilter:
        raise errors.UnsupportedError(
            "a search of rows that are not merged filters before it searches"
        )


@lru_cache(maxsize=_OPEN_SEARCHES)
def pinned_search(view: PinnedView, columns: tuple[str, ...], filter: str | None) -> ViewSearch:
    """Return the searches of a pinned view, prepared once for all calls of a process."""
    return ViewSearch(view=view.opened(), columns=columns, filter=filter)


def _first_of_each(found: pa.Table, k: int) -> pa.Table:
    """Return the first rows of each query."""
    keys = [(requests.QUERY_INDEX, "ascending"), (requests.DISTANCE, "ascending")]
    ordered = found.take(pc.sort_indices(found, sort_keys=keys))
    queries = ordered.column(requests.QUERY_INDEX).to_numpy()
    rank = np.arange(len(queries)) - np.searchsorted(queries, queries)
    return ordered.filter(pa.array(rank < k))


def _flattened(rows: pa.Table) -> pa.Table:
    """Return rows with the parts of structs as columns of their own."""
    while any(pa.types.is_struct(field.type) for field in rows.schema):
        rows = rows.flatten()
    return rows


def find_rows(view: MemWalView, keys: pa.Table | pa.RecordBatch) -> pa.Table:
    """Return the newest rows of keys, given by the key columns, in any order."""
    shape = view.shape
    (*given,) = shape.tombstones(keys)
    shown = public_schema(shape.table)
    if not given:
        return shown.empty_table()
    wanted = _unique(shape, pa.Table.from_batches(given))
    found: list[pa.RecordBatch] = []
    for batch in _unmerged(view, wanted):
        found.append(live(batch))
        wanted = _without(shape, wanted, batch)
    if wanted.num_rows:
        found += _in_base(view.base, shape, wanted)
    batches = [pa.RecordBatch.from_arrays(b.columns, schema=shown) for b in found if b.num_rows]
    return pa.Table.from_batches(batches, schema=shown)


def _unmerged(view: MemWalView, wanted: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield rows of keys from the newest source to the oldest, tombstones included."""
    shape = view.shape
    for region in view.regions:
        for memtable in reversed(region.memtables):
            rows = memtable.find(key_values(shape, wanted)).combine_chunks()
            wanted = yield from _taken(shape, wanted, rows.to_batches())
        for generation in reversed(region.generations):
            if wanted.num_rows:
                opened = open_generation(view.base.location, region.region, generation)
                rows = _in_generation(opened, shape, wanted)
                wanted = yield from _taken(shape, wanted, rows.to_batches())


def _taken(
    shape: RowShape, wanted: pa.RecordBatch, found: Sequence[pa.RecordBatch]
) -> Generator[pa.RecordBatch, None, pa.RecordBatch]:
    for batch in found:
        yield batch
        wanted = _without(shape, wanted, batch)
    return wanted


def _in_generation(opened: Snapshot, shape: RowShape, wanted: pa.RecordBatch) -> pa.Table:
    wanted = _possible(opened, shape, wanted)
    if not wanted.num_rows:
        return shape.arrow.empty_table()
    addresses = _indexed(opened, shape, wanted)
    if addresses is not None and len(addresses) <= wanted.num_rows:
        rows = row_lookup.take_at(opened, addresses, requests.ScanRequest())
        adopted = [shape.adopted(b, opened.manifest.schema) for b in rows.to_batches()]
        found = pa.Table.from_batches(adopted, schema=shape.arrow)
        if len(set(key_values(shape, found))) == found.num_rows:
            return found
    # A generation of an early release: without an index, or with several rows of a key.
    keys = shape.key_array(wanted)
    batches = read_generation(opened, shape)
    every = (b.filter(pc.is_in(shape.key_array(b), value_set=keys)) for b in batches)
    return pa.Table.from_batches(every, schema=shape.arrow)


def _possible(opened: Snapshot, shape: RowShape, wanted: pa.RecordBatch) -> pa.RecordBatch:
    """Return the keys that the bloom filter does not exclude."""
    columns = shape.key_columns(wanted)
    if not wal_keys.is_usable([column.type for column in columns]):
        return wanted
    try:
        data = opened.location.store.get(wal_files.BLOOM_FILE)
    except errors.ObjectNotFoundError:
        return wanted
    return wanted.filter(pa.array(wal_keys.may_contain(data, columns)))


def _indexed(opened: Snapshot, shape: RowShape, wanted: pa.RecordBatch) -> U64Array | None:
    """Return the addresses of live rows by the key index; None for a generation without one."""
    fragments = opened.manifest.fragments
    folder = SegmentFolder(place=FileAt(root=opened.location, path=wal_files.KEY_INDEX))
    lookup = folder.file(LOOKUP_FILE)
    if len(fragments) != 1 or not lookup.store.exists(lookup.path):
        return None
    keys = shape.key_array(wanted)
    facts = SegmentFacts(folder=folder, dtype=keys.type, details=None, index_version=0)
    column = Column(path=(wal_files.KEY_INDEX,), dtype=keys.type)
    answer = BTreeSegment(facts).answer(Membership(column=column, values=keys))
    if answer is None or answer.surely_true.is_inverted:
        return None
    offsets = answer.surely_true.ids.to_array()
    count = physical_rows(opened.files, opened.manifest_at, fragments[0])
    if len(offsets) and int(offsets.max()) >= count:
        problem = f"the key index of {opened.location.uri} has rows that its generation lacks"
        raise errors.CorruptTableError(problem, path=wal_files.KEY_INDEX)
    gone = known_deletions(opened.files, fragments[0])
    kept = np.array([offset for offset in offsets.tolist() if offset not in gone], dtype=np.uint64)
    return row_address.row_addresses(fragments[0].id, kept)


def _in_base(base: Snapshot, shape: RowShape, wanted: pa.RecordBatch) -> list[pa.RecordBatch]:
    conditions = [
        Membership(column=Column(path=(name,), dtype=values.type), values=pc.unique(values))
        for name, values in zip(shape.keys, shape.key_columns(wanted), strict=True)
    ]
    rows = stream.run(planner.plan(base, requests.ScanRequest(filter=joined(conditions))))
    keys = shape.key_array(wanted)
    return [b.filter(pc.is_in(shape.key_array(b), value_set=keys)) for b in rows]


def _unique(shape: RowShape, keys: pa.Table) -> pa.RecordBatch:
    (batch,) = keys.combine_chunks().to_batches()
    newest: dict[Any, int] = {key: n for n, key in enumerate(key_values(shape, batch))}
    return batch.take(pa.array(newest.values(), pa.int64()))


def _without(shape: RowShape, keys: pa.RecordBatch, found: pa.RecordBatch) -> pa.RecordBatch:
    is_found = pc.is_in(shape.key_array(keys), value_set=shape.key_array(found))
    return keys.filter(pc.invert(is_found))
