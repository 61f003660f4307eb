"""Prepared scan: planned, and ready to run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.data.fragment_reader import MetaColumn
from lancelake.errors import InvalidRequestError
from lancelake.format.rowids import U64Array
from lancelake.index.kind import indexed_type
from lancelake.index.text.text_query import Match, MultiMatch, Phrase, TextQuery
from lancelake.index.vector.vectors import VectorType
from lancelake.scan.plan import ScanMeasure, ScanPlan, explain
from lancelake.scan.planner import plan
from lancelake.scan.request import (
    DISTANCE,
    QUERY_INDEX,
    Fusion,
    Nearest,
    ReciprocalRankFusion,
    ScanRequest,
    SearchRequest,
    WeightedScore,
)
from lancelake.scan.row_lookup import AllowedRows, plan_masked
from lancelake.scan.search.ranked import RankedRowsFinder, RankedSearch, SearchedRows, SearchOutput
from lancelake.scan.search.text import SCORE, plan_text_search
from lancelake.scan.search.vector_search import plan_vector_search
from lancelake.scan.stream import count, run

Places = npt.NDArray[np.int64]
"""For each fused row its place in the result of a search; -1 for a row that it did not find."""
_Relevance = npt.NDArray[np.float64]
_Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedRows:
    """Rows of two searches by descending relevance, those of equal relevance by address."""

    addresses: U64Array
    relevance: _Floats
    by_vector: Places
    by_text: Places

    def first(self, count: int) -> FusedRows:
        """Return the first rows."""
        return FusedRows(
            addresses=self.addresses[:count],
            relevance=self.relevance[:count],
            by_vector=self.by_vector[:count],
            by_text=self.by_text[:count],
        )


def fuse(
    fusion: Fusion,
    *,
    near: U64Array,
    distances: _Floats,
    matching: U64Array,
    scores: _Floats,
) -> FusedRows:
    """Rank the rows of a vector search and of a text search, each given best first."""
    rows = np.unique(np.concatenate([near, matching]))
    by_vector, by_text = _places(rows, near), _places(rows, matching)
    match fusion:
        case ReciprocalRankFusion():
            relevance = _reciprocal(by_vector, fusion.constant)
            relevance = relevance + _reciprocal(by_text, fusion.constant)
        case WeightedScore():
            weight = fusion.vector_weight
            relevance = weight * _values_at(by_vector, _similarities(distances))
            relevance = relevance + (1 - weight) * _values_at(by_text, _shares(scores))
        case _:
            assert_never(fusion)
    order = np.argsort(-relevance, kind="stable")
    return FusedRows(
        addresses=rows[order],
        relevance=relevance[order].astype(np.float32),
        by_vector=by_vector[order],
        by_text=by_text[order],
    )


def _places(rows: U64Array, result: U64Array) -> Places:
    places = np.full(len(rows), -1, dtype=np.int64)
    places[np.searchsorted(rows, result)] = np.arange(len(result))
    return places


def _reciprocal(places: Places, constant: int) -> _Relevance:
    return np.where(places < 0, 0.0, 1.0 / (constant + 1 + np.maximum(places, 0)))


def _values_at(places: Places, values: _Relevance) -> _Relevance:
    if not len(values):
        return np.zeros(len(places))
    return np.where(places < 0, 0.0, values[np.maximum(places, 0)])


def _similarities(distances: _Floats) -> _Relevance:
    if not len(distances):
        return np.zeros(0)
    wide = distances.astype(np.float64)
    farthest = float(wide.max())
    span = farthest - float(wide.min())
    if not np.isfinite(span) or span == 0:
        # Infinite distances are not comparable: only finite ones are similar.
        return np.where(np.isfinite(wide), 1.0, 0.0)
    similarities: _Relevance = (farthest - wide) / span
    return similarities


def _shares(scores: _Floats) -> _Relevance:
    wide: _Relevance = np.maximum(scores.astype(np.float64), 0.0)
    best = float(wide.max(initial=0.0))
    return wide / best if best > 0 else wide


_QUOTE = '"'


def vector_column(snapshot: Snapshot, name: str | None = None) -> str:
    """Return the vector column to search: the only one of the table if none is named."""
    if name is not None:
        return name
    fields = [f for f in snapshot.manifest.schema.fields if VectorType.of(indexed_type(f))]
    if len(fields) == 1:
        return fields[0].name
    problem = "the table has no vector column"
    if fields:
        names = ", ".join(f.name for f in fields)
        problem = f"the table has several vector columns; name one of: {names}"
    raise InvalidRequestError(problem, table=snapshot.location.uri, version=snapshot.version)


def other_rows(where: str | None, like: int) -> str:
    """Return a filter that also excludes the row whose neighbours are searched."""
    others = f"_rowid != {like}"
    return others if where is None else f"({where}) and {others}"


def words_query(words: str, columns: Sequence[str] | None = None) -> TextQuery:
    """Return the query for a text: any of its words, or a phrase if it is in double quotes.

    Without columns, all columns with a text index are searched.
    """
    names = tuple(columns or ())
    is_phrase = len(words) > 1 and words.startswith(_QUOTE) and words.endswith(_QUOTE)
    if is_phrase and len(names) <= 1:
        return Phrase(column=names[0] if names else None, text=words.strip(_QUOTE))
    parts = tuple(Match(column=name, text=words) for name in names)
    if not parts:
        return Match(column=None, text=words)
    return parts[0] if len(parts) == 1 else MultiMatch(parts=parts)


RELEVANCE = "_relevance_score"
"""Column of the fused score."""
_SCORES = (DISTANCE, SCORE, RELEVANCE)
_ADDRESS = MetaColumn.ROW_ADDRESS.value


def search(snapshot: Snapshot, request: SearchRequest) -> pa.Table:
    """Return the `k` best rows, the best first.

    A vector search adds the column `_distance`, a text search `_score`, and a hybrid one both and
    `_relevance_score`; the value of a search that did not find a row is null.
    """
    if not request.is_hybrid:
        return _table(snapshot, request.limited())
    output = _output(snapshot, request)
    each = replace(
        request.limited(),
        columns=(),
        with_row_id=False,
        with_row_address=True,
        candidates=None,
        fusion=None,
    )
    near = _table(snapshot, replace(each, text=None, limit=None))
    if QUERY_INDEX in near.column_names:
        raise InvalidRequestError("a hybrid search takes one query vector, not several")
    matching = _table(snapshot, replace(each, nearest=None))
    fused = fuse(
        request.fusion or ReciprocalRankFusion(),
        near=near.column(_ADDRESS).to_numpy(),
        distances=near.column(DISTANCE).to_numpy(),
        matching=matching.column(_ADDRESS).to_numpy(),
        scores=matching.column(SCORE).to_numpy(),
    )
    first = fused.first(request.k)
    scores = fused_scores(first, near, matching)
    return output.table(SearchedRows(snapshot=snapshot, addresses=first.addresses, scores=scores))


def _table(snapshot: Snapshot, request: SearchRequest) -> pa.Table:
    with prepare(snapshot, request).run() as reader:
        return reader.read_all()


def fused_scores(fused: FusedRows, near: pa.Table, matching: pa.Table) -> dict[str, pa.Array]:
    """Return the scores of fused rows; that of a search that did not find a row is null."""
    return {
        DISTANCE: _values(near.column(DISTANCE), fused.by_vector),
        SCORE: _values(matching.column(SCORE), fused.by_text),
        RELEVANCE: pa.array(fused.relevance),
    }


def _values(column: pa.ChunkedArray, places: Places) -> pa.Array:
    rows = pa.array(np.maximum(places, 0), mask=places < 0)
    values = column.take(rows).combine_chunks()
    return values if isinstance(values, pa.Array) else pa.concat_arrays(values.chunks)


def _output(snapshot: Snapshot, request: SearchRequest) -> SearchOutput:
    """Return the columns of a hybrid result: scores that are not requested follow the others."""
    taken = [name for name in _SCORES if name in snapshot.manifest.schema.names]
    if taken:
        problem = f"a hybrid search needs the column name {taken[0]!r}, which the table has"
        raise InvalidRequestError(problem, column=taken[0])
    output = SearchOutput.of(snapshot, request, (DISTANCE, SCORE), RELEVANCE)
    names = list(snapshot.manifest.schema.names if request.columns is None else request.columns)
    names += [name for name in _SCORES if name not in names]
    row_id = MetaColumn.ROW_ID.value
    if request.with_row_id:
        names = [*(name for name in names if name != row_id), row_id]
    return replace(output, names=tuple(names))


def plan_filtered_search(
    snapshot: Snapshot, request: SearchRequest, mask: AllowedRows | None
) -> RankedSearch:
    """Plan a search whose rows a second search of another kind must find too.

    With `prefilter` the search considers only what the filter finds. Otherwise the filter searches
    the result of the search.
    """
    _ensure_possible(request)
    main = replace(request, search_filter=None)
    planned = _plan(snapshot, main, mask)
    rows = _FilteredRows(
        snapshot=snapshot, main=main, finder=planned.finder, second=_second(request), mask=mask
    )
    return replace(planned, finder=rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class _FilteredRows:
    """The rows of a search that another one finds too, by the rank of the first."""

    snapshot: Snapshot
    main: SearchRequest
    finder: RankedRowsFinder
    second: SearchRequest
    mask: AllowedRows | None

    @property
    def num_fragments(self) -> int:
        """Number of fragments that are scanned."""
        return self.finder.num_fragments

    def search(self) -> SearchedRows:
        """Search twice, and return the rows by rank."""
        if self.main.prefilter:
            allowed = _plan(self.snapshot, self.second, self.mask).finder.search()
            within = AllowedRows.at(allowed.addresses)
            return _plan(self.snapshot, self.main, within).finder.search()
        if isinstance(self.second.text, Phrase):
            problem = "a phrase cannot filter the result of a search"
            raise InvalidRequestError(problem, action="Use prefilter=True.")
        rows = self.finder.search()
        within = AllowedRows.at(rows.addresses)
        both = _plan(self.snapshot, self.second, within).finder.search().addresses
        return rows.only(np.flatnonzero(np.isin(rows.addresses, both)))

    def steps(self, *, verbose: bool, measure: ScanMeasure | None) -> list[str]:
        """Describe both searches, the one that runs last first."""
        second = _plan(self.snapshot, self.second, self.mask).finder
        steps = [
            self.finder.steps(verbose=verbose, measure=measure),
            second.steps(verbose=verbose, measure=None),
        ]
        return [line for part in steps[:: 1 if self.main.prefilter else -1] for line in part]


def _plan(snapshot: Snapshot, request: SearchRequest, mask: AllowedRows | None) -> RankedSearch:
    plan = plan_vector_search if request.nearest is not None else plan_text_search
    return plan(snapshot, request, mask)


def _second(request: SearchRequest) -> SearchRequest:
    """Return the request of the second search, for all rows that it finds."""
    query = request.search_filter
    return SearchRequest(
        columns=(),
        nearest=query if isinstance(query, Nearest) else None,
        text=None if isinstance(query, Nearest) else query,
        filter=request.filter if request.prefilter else None,
        fragment_ids=request.fragment_ids,
        fast_search=request.fast_search,
        use_scalar_index=request.use_scalar_index,
    )


def _ensure_possible(request: SearchRequest) -> None:
    """Raise unless the two searches are of different kinds."""
    is_vector = isinstance(request.search_filter, Nearest)
    if request.nearest is None and request.text is None:
        raise InvalidRequestError(
            "Query filter can only be used with full text search or vector search"
        )
    if is_vector and request.nearest is not None:
        raise InvalidRequestError("Query filter can't be used with vector search")
    if not is_vector and request.text is not None:
        raise InvalidRequestError("Fts filter can't be used with fts search")


@dataclass(frozen=True, slots=True)
class PlainScan:
    """A scan of rows in their order, or in that of a column."""

    plan: ScanPlan

    @property
    def schema(self) -> pa.Schema:
        """Schema of the result."""
        return self.plan.schema

    @property
    def num_fragments(self) -> int:
        """Number of fragments to scan."""
        return len(self.plan.tasks)

    def run(self, measure: ScanMeasure | None = None) -> pa.RecordBatchReader:
        """Stream the rows, counted if asked."""
        return run(self.plan, measure)

    def count(self) -> int:
        """Count the rows."""
        return count(self.plan)

    def explain(self, *, verbose: bool = False, measure: ScanMeasure | None = None) -> str:
        """Describe the steps, with the counts of a run, if given."""
        return explain(self.plan, verbose=verbose, measure=measure)


PreparedScan = PlainScan | RankedSearch
"""Rows of a version that are read when it is run."""


def prepare(
    snapshot: Snapshot, request: ScanRequest, mask: AllowedRows | None = None
) -> PreparedScan:
    """Plan what a request asks for, on the rows of a mask."""
    if isinstance(request, SearchRequest):
        if request.search_filter is not None:
            return plan_filtered_search(snapshot, request, mask)
        if request.nearest is not None:
            return plan_vector_search(snapshot, request, mask)
        if request.text is not None:
            return plan_text_search(snapshot, request, mask)
    if mask is not None:
        return PlainScan(plan_masked(snapshot, request, mask))
    return PlainScan(plan(snapshot, request))
