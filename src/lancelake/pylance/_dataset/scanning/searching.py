"""Dataset method that searches by vector, by text, or by both."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, Self

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError
from lancelake.pylance._dataset.arguments.os_errors import names_dataset
from lancelake.pylance._dataset.arguments.scan_arguments import Columns, Filter, request_columns
from lancelake.pylance._dataset.scanning.search_options import VectorSearchOptions
from lancelake.pylance.query import FullTextQuery, text_query
from lancelake.scan.nearest import DEFAULT_K, Nearest
from lancelake.scan.search.fusion import fusion_of
from lancelake.scan.search.request import SearchRequest, vector_column
from lancelake.scan.search.run import search


class DatasetSearch:
    """Methods that search the open version."""

    _snapshot: Snapshot

    @names_dataset
    def search(
        self,
        full_text_query: str | FullTextQuery | Mapping[str, Any] | None = None,
        nearest: Mapping[str, Any] | None = None,
        *,
        k: int = DEFAULT_K,
        columns: Columns = None,
        filter: Filter = None,
        prefilter: bool = True,
        vector_weight: float | None = None,
        rank_constant: int | None = None,
        candidates: int | None = None,
        with_row_id: bool = False,
        fast_search: bool = False,
    ) -> pa.Table:
        """Return the `k` best rows of a full text query, of a query vector, or of both.

        With both, the rows that the two searches find are fused and returned with `_distance`,
        `_score`
        and `_relevance_score`.

        Args:
            full_text_query: Text, or a query of `lancelake.pylance.query`.
            nearest: Vector search as in `scanner`; `column` is not needed if there is one vector
                column.
            k: Rows to return, at most.
            columns: Names, or SQL expressions by name; by default all columns.
            filter: SQL, or an expression of `pyarrow.compute`.
            prefilter: Apply the filter before the search instead of after it.
            vector_weight: Fuse by the weighted sum of similarity and text score; between 0 and 1.
            rank_constant: Fuse by the sum of `1 / (rank_constant + rank)`, which is the default,
                with a constant of 60.
            candidates: Rows that each of the two searches contributes, at most.
            with_row_id: Add the column `_rowid`.
            fast_search: Skip fragments that the searched indices do not cover.

        Returns:
            The rows, best first.

        Raises:
            InvalidRequestError: No query is given, or an option does not apply to the queries.

        Examples:
            >>> docs.create_scalar_index("text", "INVERTED")
            >>> docs.search("panda", columns=["text"])["text"].to_pylist()
            ['red panda']
            >>> docs.search(nearest={"q": [0, 1]}, k=1, columns=["id"]).to_pylist()
            [{'id': 2, '_distance': 0.0}]
            >>> docs.search("panda", {"q": [1, 1]}, k=1, columns=["text"])["text"].to_pylist()
            ['red panda']
        """
        text = None if full_text_query is None else text_query(full_text_query)
        request = SearchRequest(
            nearest=None if nearest is None else nearest_of(self._snapshot, nearest),
            text=text,
            k=operator.index(k),
            filter=filter,
            prefilter=prefilter,
            columns=request_columns(columns),
            with_row_id=with_row_id,
            fast_search=fast_search,
            candidates=candidates,
            fusion=fusion_of(vector_weight, rank_constant),
        )
        return search(self._snapshot, request)


def nearest_of(snapshot: Snapshot, given: Mapping[str, Any]) -> Nearest:
    """Return the query of a search by vector; the only vector column needs no name."""
    if "k" in given:
        problem = "k is an argument of the search, not of its query vector"
        raise InvalidRequestError(problem)
    column = vector_column(snapshot, given.get("column"))
    return _Query().nearest(**{**given, "column": column}).value


class _Query(VectorSearchOptions):
    """Takes the arguments of `nearest` as a scan builder does."""

    value: Nearest

    def _with(self, **changes: Any) -> Self:
        self.value = changes["nearest"]
        return self
