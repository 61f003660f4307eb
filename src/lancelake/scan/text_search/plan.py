"""Plan of a full text search: the rows that match, ranked, and what is read of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.errors import InvalidRequestError, LanceTableError, UnsupportedError
from lancelake.expr.predicate import Filter
from lancelake.format import row_address
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FragmentId
from lancelake.format.rowids.segment import U64Array
from lancelake.index.row_ids import RowIds
from lancelake.index.text.query import Boolean, Boost, Match, MultiMatch, Phrase, TextQuery
from lancelake.scan.plan import ScanPlan
from lancelake.scan.planner import chosen_fragments, plan
from lancelake.scan.ranking import RankedRows
from lancelake.scan.request import ScanRequest
from lancelake.scan.row_mask import AllowedRows, masked_plan
from lancelake.scan.stream import run
from lancelake.scan.text_search.evaluate import RowTest, TextSearch
from lancelake.scan.text_search.scored_rows import ScoredRows
from lancelake.scan.text_search.sources import indexed_columns

SCORE = "_score"
_Columns = tuple[str, ...] | FrozenMap[str, str] | None
_SCORE_FIELD = pa.field(SCORE, pa.float32())


@names_table
def text_plan(
    snapshot: Snapshot, request: ScanRequest, mask: AllowedRows | None = None
) -> ScanPlan:
    """Search the rows of a version and plan to read them, best first.

    With `prefilter`, only rows that the filter keeps are searched. Otherwise the filter is applied
    to the rows that the search returns, of which there may be fewer than the limit.
    """
    _ensure_possible(request)
    if request.text_query is None:
        raise InvalidRequestError("there is no full text query")
    query = with_columns(snapshot, request.text_query)
    try:
        found = _found(snapshot, request, query, mask)
    except LanceTableError as error:
        raise error.at(snapshot.location.uri, snapshot.version) from error.__cause__
    names, place = _projected(request)
    fragments = np.unique(row_address.fragment_of(found.addresses)).tolist()
    reads = plan(
        snapshot,
        replace(_all_rows(request), columns=names, fragment_ids=tuple(map(FragmentId, fragments))),
    )
    place = _score_place(reads.schema, request) if place is None else place
    shown = reads.schema if place < 0 else reads.schema.insert(place, _SCORE_FIELD)
    ranked = RankedRows(
        addresses=found.addresses,
        values=pa.array(found.scores),
        place=None if place < 0 else place,
        steps=tuple(described(query)),
    )
    return replace(reads, schema=shown, ranked=ranked)


def with_columns(snapshot: Snapshot, query: TextQuery) -> TextQuery:
    """Return a query whose parts name their columns: all that have a text index by default."""
    match query:
        case Match() | Phrase():
            return query if query.column is not None else _on_indexed(snapshot, query)
        case MultiMatch():
            return query
        case Boost():
            return replace(
                query,
                positive=with_columns(snapshot, query.positive),
                negative=with_columns(snapshot, query.negative),
            )
        case Boolean():
            named = {
                part: tuple(with_columns(snapshot, each) for each in getattr(query, part))
                for part in ("must", "should", "must_not")
            }
            return Boolean(**named)
        case _:
            assert_never(query)


def _on_indexed(snapshot: Snapshot, query: Match | Phrase) -> TextQuery:
    columns = indexed_columns(snapshot)
    if not columns:
        raise InvalidRequestError(
            "Cannot perform full text search unless an INVERTED index has been created on at "
            "least one column",
            table=snapshot.location.uri,
            version=snapshot.version,
        )
    if isinstance(query, Phrase):
        if len(columns) > 1:
            problem = f"a phrase query needs a column; these are indexed: {', '.join(columns)}"
            raise InvalidRequestError(problem, table=snapshot.location.uri)
        return replace(query, column=columns[0])
    parts = tuple(replace(query, column=column) for column in columns)
    return parts[0] if len(parts) == 1 else MultiMatch(parts=parts)


def _found(
    snapshot: Snapshot, request: ScanRequest, query: TextQuery, mask: AllowedRows | None
) -> ScoredRows:
    """Return the rows of a search, best first, without those that are skipped."""
    skip = request.offset or 0
    most = None if request.limit is None else request.limit + skip
    is_before = request.filter is not None and request.prefilter
    search = TextSearch(
        snapshot=snapshot,
        fragments=BitMap(fragment.id for fragment in chosen_fragments(snapshot, request)),
        covers_all=not request.fast_search,
        allowed=_allowed(snapshot, request, mask, is_before=is_before),
    )
    found = search.rows(query, most).ranked(most)
    found = ScoredRows(found.addresses[skip:], found.scores[skip:])
    if request.filter is None or is_before:
        return found
    kept = _matching(snapshot, request.filter, found.addresses)
    return ScoredRows(found.addresses[kept], found.scores[kept])


def _allowed(
    snapshot: Snapshot, request: ScanRequest, mask: AllowedRows | None, *, is_before: bool
) -> RowTest | None:
    """Return which rows may be found; None for all."""
    if not is_before and mask is None:
        return None
    wanted = ScanRequest(
        columns=(),
        filter=request.filter if is_before else None,
        with_row_address=True,
        fragment_ids=request.fragment_ids,
        use_scalar_index=request.use_scalar_index and mask is None,
    )
    reads = plan(snapshot, wanted) if mask is None else masked_plan(snapshot, wanted, mask)
    return RowIds.of(_addresses(reads)).tester()


def _matching(snapshot: Snapshot, filter: Filter, addresses: U64Array) -> np.ndarray:
    """Return which rows a filter keeps."""
    wanted = ScanRequest(columns=(), filter=filter, with_row_address=True, use_scalar_index=False)
    mask = AllowedRows(dict(RowIds.of(addresses).parts), {})
    reads = plan(snapshot, wanted)
    tasks = (mask.applied(task) for task in reads.tasks)
    kept = _addresses(replace(reads, tasks=tuple(task for task in tasks if task is not None)))
    return np.isin(addresses, kept)


def _addresses(reads: ScanPlan) -> U64Array:
    with run(reads) as rows:
        parts = [np.asarray(batch.column(0), dtype=np.uint64) for batch in rows]
    return np.concatenate([np.zeros(0, np.uint64), *parts])


def _ensure_possible(request: ScanRequest) -> None:
    if request.order_by:
        raise UnsupportedError("a full text search returns rows by score; order_by is not possible")
    if request.include_deleted_rows:
        raise UnsupportedError("a full text search does not find deleted rows")


def _all_rows(request: ScanRequest) -> ScanRequest:
    """Return the request without what the search has done."""
    return replace(
        request, text_query=None, filter=None, limit=None, offset=None, fast_search=False
    )


def _projected(request: ScanRequest) -> tuple[_Columns, int | None]:
    """Return the columns to read, and where the score was asked for; None if it was not."""
    columns = request.columns
    if isinstance(columns, tuple) and SCORE in columns:
        return tuple(name for name in columns if name != SCORE), columns.index(SCORE)
    return columns, None


def _score_place(schema: pa.Schema, request: ScanRequest) -> int:
    """Return where the score is added: before the row id and address; -1 if it is not."""
    if request.hides_scores and request.columns is not None:
        return -1
    return len(schema) - int(request.with_row_id) - int(request.with_row_address)


def described(query: TextQuery) -> list[str]:
    """Describe a query, the outer parts first."""
    match query:
        case Match():
            return [f"MatchQuery: column={query.column}, query=[{query.text}]"]
        case Phrase():
            return [f"PhraseQuery: column={query.column}, query=[{query.text}]"]
        case Boost():
            parts = [*described(query.positive), *described(query.negative)]
            return [f"BoostQuery: negative_boost={query.negative_boost}", *_inner(parts)]
        case MultiMatch():
            return ["MultiMatchQuery", *_inner([s for p in query.parts for s in described(p)])]
        case Boolean():
            steps = ["BooleanQuery"]
            for name in ("must", "should", "must_not"):
                for part in getattr(query, name):
                    first, *rest = described(part)
                    steps += _inner([f"{name}: {first}", *rest])
            return steps
        case _:
            assert_never(query)


def _inner(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]
