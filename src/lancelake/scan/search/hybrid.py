"""Search by text, vector, or both at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.data.deletion_files import MetaColumn
from lancelake.errors import InvalidRequestError
from lancelake.format.rowids import U64Array
from lancelake.index.kind import indexed_type
from lancelake.index.text.text_query import Match, MultiMatch, Phrase, TextQuery
from lancelake.index.vector.vectors import VectorType
from lancelake.scan.request import (
    DISTANCE,
    QUERY_INDEX,
    Fusion,
    ReciprocalRankFusion,
    SearchRequest,
    WeightedScore,
)
from lancelake.scan.search.prepared import prepare
from lancelake.scan.search.ranked import SearchedRows, SearchOutput
from lancelake.scan.search.text import SCORE

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
