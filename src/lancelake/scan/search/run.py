"""Run a search: by vector, by text, or by both, with the results fused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.data.row_meta import MetaColumn
from lancelake.errors import InvalidRequestError
from lancelake.index.text.query import TextQuery
from lancelake.scan.nearest import DISTANCE, QUERY_INDEX, Nearest
from lancelake.scan.prepared import prepare
from lancelake.scan.request import ScanRequest
from lancelake.scan.scored_rows import SearchedRows, SearchOutput
from lancelake.scan.search.fusion import FusedRows, Places, ReciprocalRankFusion, fuse
from lancelake.scan.search.request import SearchRequest
from lancelake.scan.text_search.plan import SCORE

RELEVANCE = "_relevance_score"
"""Column of the fused score."""
_SCORES = (DISTANCE, SCORE, RELEVANCE)
_ADDRESS = MetaColumn.ROW_ADDRESS.value


@names_table
def search(snapshot: Snapshot, request: SearchRequest) -> pa.Table:
    """Return the best rows, the best first.

    A vector search adds the column `_distance`, a text search `_score`, and a hybrid one both and
    `_relevance_score`; the value of a search that did not find a row is null.
    """
    nearest, text = request.nearest, request.text
    if nearest is not None and text is not None:
        return _hybrid(snapshot, request, nearest, text)
    wanted = replace(
        _scan(request, nearest, text), columns=request.columns, with_row_id=request.with_row_id
    )
    return _table(snapshot, wanted)


def _hybrid(
    snapshot: Snapshot, request: SearchRequest, nearest: Nearest, text: TextQuery
) -> pa.Table:
    output = _output(snapshot, request)
    found = replace(_scan(request, nearest, None), columns=(), with_row_address=True)
    near = _table(snapshot, found)
    if QUERY_INDEX in near.column_names:
        raise InvalidRequestError("a hybrid search takes one query vector, not several")
    found = replace(_scan(request, None, text), columns=(), with_row_address=True)
    matching = _table(snapshot, found)
    fused = fuse(
        request.fusion or ReciprocalRankFusion(),
        near=near.column(_ADDRESS).to_numpy(),
        distances=near.column(DISTANCE).to_numpy(),
        matching=matching.column(_ADDRESS).to_numpy(),
        scores=matching.column(SCORE).to_numpy(),
    )
    rows = _scored(snapshot, fused.first(request.k), near, matching)
    return output.table(rows)


def _scan(request: SearchRequest, nearest: Nearest | None, text: TextQuery | None) -> ScanRequest:
    """Return the request of one of the searches."""
    count = request.rows_per_search
    return ScanRequest(
        nearest=None if nearest is None else replace(nearest, k=count),
        text_query=text,
        limit=None if text is None else count,
        filter=request.filter,
        prefilter=request.prefilter,
        fast_search=request.fast_search,
        use_scalar_index=request.use_scalar_index,
    )


def _table(snapshot: Snapshot, request: ScanRequest) -> pa.Table:
    with prepare(snapshot, request).run() as reader:
        return reader.read_all()


def _scored(
    snapshot: Snapshot, fused: FusedRows, near: pa.Table, matching: pa.Table
) -> SearchedRows:
    return SearchedRows(
        snapshot=snapshot,
        addresses=fused.addresses,
        scores=fused_scores(fused, near, matching),
    )


def fused_scores(fused: FusedRows, near: pa.Table, matching: pa.Table) -> dict[str, pa.Array]:
    """Return the scores of fused rows; that of a search that did not find a row is null."""
    return {
        DISTANCE: _values(near.column(DISTANCE), fused.by_vector),
        SCORE: _values(matching.column(SCORE), fused.by_text),
        RELEVANCE: pa.array(fused.relevance),
    }


def _values(column: pa.ChunkedArray, places: Places) -> pa.Array:
    chosen = pa.array(np.maximum(places, 0), mask=places < 0)
    values = column.take(chosen).combine_chunks()
    return values if isinstance(values, pa.Array) else pa.concat_arrays(values.chunks)


def _output(snapshot: Snapshot, request: SearchRequest) -> SearchOutput:
    """Return the columns of a hybrid result: scores that are not requested follow the others."""
    taken = [name for name in _SCORES if name in snapshot.manifest.schema.names]
    if taken:
        problem = f"a hybrid search needs the column name {taken[0]!r}, which the table has"
        raise InvalidRequestError(problem, column=taken[0])
    wanted = ScanRequest(columns=request.columns, with_row_id=request.with_row_id)
    output = SearchOutput.of(snapshot, wanted, (DISTANCE, SCORE), RELEVANCE)
    names = list(snapshot.manifest.schema.names if request.columns is None else request.columns)
    names += [name for name in _SCORES if name not in names]
    row_id = MetaColumn.ROW_ID.value
    if request.with_row_id:
        names = [*(name for name in names if name != row_id), row_id]
    return replace(output, names=tuple(names))
