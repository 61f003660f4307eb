"""Full-text search: plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError, UnsupportedError, naming
from lancelake.format.rowids import U64Array
from lancelake.index.row_sets import RowIds
from lancelake.index.text.text_query import Boolean, Boost, Match, MultiMatch, Phrase, TextQuery
from lancelake.scan.plan import ScanMeasure, ScanPlan, explain, index_steps, measured_scan
from lancelake.scan.planner import chosen_fragments, plan
from lancelake.scan.request import ScanRequest, SearchRequest
from lancelake.scan.row_lookup import AllowedRows, plan_masked
from lancelake.scan.search.ranked import RankedSearch, SearchedRows
from lancelake.scan.search.text_index import RowTest, TextSearch, indexed_columns, text_column
from lancelake.scan.stream import run

SCORE = "_score"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRows:
    """A search for the rows of one version that match a query."""

    snapshot: Snapshot
    request: SearchRequest
    query: TextQuery
    mask: AllowedRows | None

    @property
    def num_fragments(self) -> int:
        """Number of fragments that are searched, by their index or by a scan."""
        return len(chosen_fragments(self.snapshot, self.request))

    def search(self) -> SearchedRows:
        """Search, and return the rows of the result, the best first.

        With `prefilter`, only rows that the filter keeps are searched. Otherwise the filter is
        applied to the rows that the search returns, of which there may be fewer than the limit.
        """
        with naming(self.snapshot.location.uri, self.snapshot.version):
            return self._find()

    def steps(self, *, verbose: bool, measure: ScanMeasure | None) -> list[str]:
        """Describe the parts of the query, the outer ones first."""
        first, *others = describe_query(self.query)
        others += [f"  {line}" for line in self._rows_read(verbose=verbose)]
        fragments = [f"  fragment {i}" for i in self._fragments()] if verbose else []
        count = "" if measure is None else f", {measured_scan(measure)}"
        return [first + count, *(line.removeprefix("  ") for line in (*others, *fragments))]

    def _rows_read(self, *, verbose: bool) -> list[str]:
        """Describe the rows that are read: for the filter, and those that no index covers."""
        fragments = self._fragments()
        lines: list[str] = []
        if self.request.filter is not None and self.request.prefilter:
            reads = _matching(self.snapshot, self.request, self.mask, is_before=True)
            search = reads.index_search
            is_covered = search is not None and search.covered.issuperset(BitMap(fragments))
            lines = index_steps(reads) if is_covered else explain(reads).splitlines()
        names = [] if self.request.fast_search else dict.fromkeys(_columns(self.query))
        for name in names:
            left = text_column(self.snapshot, name, fragments).uncovered()
            if left:
                shown = f", fragments={list(left)}" if verbose else ""
                lines += [
                    f"FlatMatchQuery: column={name}",
                    f"  LanceRead: uri={self.snapshot.location.uri}, "
                    f"version={self.snapshot.version}, num_fragments={len(left)}{shown}, "
                    f"projection=[{name}]",
                ]
        return lines

    def _find(self) -> SearchedRows:
        request = self.request
        skip = request.offset or 0
        most = None if request.limit is None else request.limit + skip
        is_before = request.filter is not None and request.prefilter
        search = TextSearch(
            snapshot=self.snapshot,
            fragments=self._fragments(),
            covers_all=not request.fast_search,
            allowed=_allowed(self.snapshot, request, self.mask, is_before=is_before),
        )
        rows = search.rows(self.query, most).ranked(most)
        result = SearchedRows(
            snapshot=self.snapshot,
            addresses=rows.addresses[skip:],
            scores={SCORE: pa.array(rows.scores[skip:])},
        )
        if request.filter is None or is_before or not len(result):
            return result
        return result.matching(request.filter)

    def _fragments(self) -> BitMap:
        return BitMap(fragment.id for fragment in chosen_fragments(self.snapshot, self.request))


def plan_text_search(
    snapshot: Snapshot, request: SearchRequest, mask: AllowedRows | None = None
) -> RankedSearch:
    """Plan a search of one version."""
    if request.include_deleted_rows:
        raise UnsupportedError("Cannot include deleted rows in a full text search")
    if request.text is None:
        raise InvalidRequestError("there is no full text query")
    query = with_columns(snapshot, request.text)
    request = replace(request, text=None)
    rows = TextRows(snapshot=snapshot, request=request, query=query, mask=mask)
    return RankedSearch.of(snapshot, request, rows, {SCORE: pa.float32()})


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


def _allowed(
    snapshot: Snapshot, request: SearchRequest, mask: AllowedRows | None, *, is_before: bool
) -> RowTest | None:
    """Return which rows may be found; None for all."""
    if not is_before and mask is None:
        return None
    return RowIds.of(_addresses(_matching(snapshot, request, mask, is_before=is_before))).tester()


def _matching(
    snapshot: Snapshot, request: SearchRequest, mask: AllowedRows | None, *, is_before: bool
) -> ScanPlan:
    """Plan the scan for the rows that may be found."""
    wanted = ScanRequest(
        columns=(),
        filter=request.filter if is_before else None,
        with_row_address=True,
        fragment_ids=request.fragment_ids,
        use_scalar_index=request.use_scalar_index and mask is None,
    )
    return plan(snapshot, wanted) if mask is None else plan_masked(snapshot, wanted, mask)


def _addresses(reads: ScanPlan) -> U64Array:
    with run(reads) as rows:
        parts = [np.asarray(batch.column(0), dtype=np.uint64) for batch in rows]
    return np.concatenate([np.zeros(0, np.uint64), *parts])


def describe_query(query: TextQuery) -> list[str]:
    """Describe a query, the outer parts first."""
    match query:
        case Match():
            return [f"MatchQuery: column={query.column}, query=[{query.text}]"]
        case Phrase():
            return [f"PhraseQuery: column={query.column}, query=[{query.text}]"]
        case Boost():
            parts = [*describe_query(query.positive), *describe_query(query.negative)]
            return [f"BoostQuery: negative_boost={query.negative_boost}", *_inner(parts)]
        case MultiMatch():
            return ["MultiMatchQuery", *_inner([s for p in query.parts for s in describe_query(p)])]
        case Boolean():
            steps = ["BooleanQuery"]
            for name in ("must", "should", "must_not"):
                for part in getattr(query, name):
                    first, *rest = describe_query(part)
                    steps += _inner([f"{name}: {first}", *rest])
            return steps
        case _:
            assert_never(query)


def _columns(query: TextQuery) -> Iterator[str]:
    """Yield the columns that a query searches."""
    match query:
        case Match() | Phrase():
            if query.column is not None:
                yield query.column
        case Boost():
            yield from _columns(query.positive)
            yield from _columns(query.negative)
        case MultiMatch():
            for part in query.parts:
                yield from _columns(part)
        case Boolean():
            for each in (*query.must, *query.should, *query.must_not):
                yield from _columns(each)
        case _:
            assert_never(query)


def _inner(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]
