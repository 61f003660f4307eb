"""Full text queries, as in pylance."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from enum import Enum, StrEnum
from typing import Any

from lancelake.core.values.reads import text_query as core
from lancelake.core.values.reads import words_query
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.pylance._values.opened import call_text, chosen

__all__ = [
    "BooleanQuery",
    "BoostQuery",
    "DocumentGranularity",
    "FullTextOperator",
    "FullTextQuery",
    "FullTextQueryType",
    "MatchQuery",
    "MultiMatchQuery",
    "Occur",
    "PhraseQuery",
]

_NO_COLUMN = "a full text query needs at least one column"


class FullTextQueryType(Enum):
    """The kinds of queries."""

    MATCH = "match"
    MATCH_PHRASE = "match_phrase"
    BOOST = "boost"
    MULTI_MATCH = "multi_match"
    COMBINED_FIELDS = "combined_fields"
    BOOLEAN = "boolean"


class FullTextOperator(Enum):
    """Whether all terms of a query must match, or any of them."""

    AND = "AND"
    OR = "OR"


class DocumentGranularity(StrEnum):
    """What one document of a full-text index is: a row, or an element of a list."""

    ROW = "row"
    LIST_ELEMENT = "list_element"


class Occur(Enum):
    """How a clause of a boolean query takes part in it."""

    SHOULD = "SHOULD"
    MUST = "MUST"
    MUST_NOT = "MUST_NOT"


class FullTextQuery(abc.ABC):
    """A full text query."""

    _inner: core.TextQuery

    @property
    def inner(self) -> core.TextQuery:
        """The query as a value."""
        return self._inner

    def __repr__(self) -> str:
        return call_text(self, **chosen(self._inner))

    @abc.abstractmethod
    def query_type(self) -> FullTextQueryType:
        """Return the kind of the query."""

    def __and__(self, other: FullTextQuery) -> FullTextQuery:
        """Return a query for the rows that match both."""
        return BooleanQuery([(Occur.MUST, self), (Occur.MUST, other)])

    def __or__(self, other: FullTextQuery) -> FullTextQuery:
        """Return a query for the rows that match at least one."""
        return BooleanQuery([(Occur.SHOULD, self), (Occur.SHOULD, other)])


class MatchQuery(FullTextQuery):
    """Rows that have any term of a text, or all of them.

    Examples:
        >>> from lancelake.pylance.query import FullTextOperator, MatchQuery
        >>> docs.create_scalar_index("text", "INVERTED")
        >>> query = MatchQuery("red panda", "text", operator=FullTextOperator.AND)
        >>> docs.search(query, columns=["id"])["id"].to_pylist()
        [3]
    """

    def __init__(
        self,
        query: str,
        column: str,
        *,
        boost: float = 1.0,
        fuzziness: int | None = 0,
        max_expansions: int = core.DEFAULT_MAX_EXPANSIONS,
        operator: FullTextOperator = FullTextOperator.OR,
        prefix_length: int = 0,
        document_granularity: DocumentGranularity | None = None,
    ) -> None:
        """Create a query.

        Args:
            query: The text.
            column: The column.
            boost: Factor of the scores.
            fuzziness: Largest edit distance between words of the query, which are neither stemmed
                nor put into lower case, and terms of the index; None derives it from the length of
                the terms of the query, which official releases do not do.
            max_expansions: Similar terms to search, at most.
            operator: Whether any term must match, or all of them.
            prefix_length: Characters at the start of a term that must be equal.
            document_granularity: ROW.
        """
        _ensure_rows(document_granularity)
        self._inner = core.Match(
            column=column,
            text=query,
            boost=boost,
            requires_all=_requires_all(operator),
            fuzziness=fuzziness,
            prefix_length=prefix_length,
            max_expansions=max_expansions,
        )

    def query_type(self) -> FullTextQueryType:
        """Return the kind of the query."""
        return FullTextQueryType.MATCH


class PhraseQuery(FullTextQuery):
    """Rows that have the terms of a text in their order.

    The index must have positions.

    Examples:
        >>> from lancelake.pylance.query import PhraseQuery
        >>> docs.create_scalar_index("text", "INVERTED", with_position=True)
        >>> docs.search(PhraseQuery("blue whale", "text"), columns=["id"])["id"].to_pylist()
        [2]
    """

    def __init__(
        self,
        query: str,
        column: str,
        *,
        slop: int = 0,
        document_granularity: DocumentGranularity | None = None,
    ) -> None:
        """Create a query.

        Args:
            query: The text.
            column: The column.
            slop: Positions that each term may be late, at most.
            document_granularity: ROW.
        """
        _ensure_rows(document_granularity)
        self._inner = core.Phrase(column=column, text=query, slop=slop)

    def query_type(self) -> FullTextQueryType:
        """Return the kind of the query."""
        return FullTextQueryType.MATCH_PHRASE


class BoostQuery(FullTextQuery):
    """Rows of one query; those that match another, too, get a lower score.

    Examples:
        >>> from lancelake.pylance.query import BoostQuery, MatchQuery
        >>> docs.create_scalar_index("text", "INVERTED")
        >>> query = BoostQuery(MatchQuery("red", "text"), MatchQuery("fox", "text"))
        >>> docs.search(query, columns=["id"])["id"].to_pylist()
        [3, 1]
    """

    def __init__(
        self,
        positive: FullTextQuery,
        negative: FullTextQuery,
        *,
        negative_boost: float = 0.5,
    ) -> None:
        """Create a query.

        Args:
            positive: The query whose rows are returned.
            negative: The query that lowers scores.
            negative_boost: The part of the other score that is subtracted.
        """
        self._inner = core.Boost(
            positive=positive.inner, negative=negative.inner, negative_boost=negative_boost
        )

    def query_type(self) -> FullTextQueryType:
        """Return the kind of the query."""
        return FullTextQueryType.BOOST


class MultiMatchQuery(FullTextQuery):
    """Rows that match in at least one column, with the score of the best one.

    Examples:
        >>> from lancelake.pylance.query import MultiMatchQuery
        >>> docs.create_scalar_index("text", "INVERTED")
        >>> docs.search(MultiMatchQuery("whale", ["text"]), columns=["id"])["id"].to_pylist()
        [2]
    """

    def __init__(
        self,
        query: str,
        columns: list[str],
        *,
        boosts: list[float] | None = None,
        operator: FullTextOperator = FullTextOperator.OR,
    ) -> None:
        """Create a query.

        Args:
            query: The text.
            columns: The columns.
            boosts: Factors of the scores of each column.
            operator: Whether any term must match, or all of them.
        """
        self._inner = _in_columns(query, columns, boosts, requires_all=_requires_all(operator))

    def query_type(self) -> FullTextQueryType:
        """Return the kind of the query."""
        return FullTextQueryType.MULTI_MATCH


class BooleanQuery(FullTextQuery):
    """Rows that match clauses which must, should or must not match.

    Examples:
        >>> from lancelake.pylance.query import BooleanQuery, MatchQuery, Occur
        >>> docs.create_scalar_index("text", "INVERTED")
        >>> red, fox = MatchQuery("red", "text"), MatchQuery("fox", "text")
        >>> query = BooleanQuery([(Occur.MUST, red), (Occur.MUST_NOT, fox)])
        >>> docs.search(query, columns=["id"])["id"].to_pylist()
        [3]
    """

    def __init__(self, queries: list[tuple[Occur, FullTextQuery]]) -> None:
        """Create a query.

        Args:
            queries: The clauses; the scores of those that match are added.
        """
        self._inner = core.Boolean(
            must=_clauses(queries, Occur.MUST),
            should=_clauses(queries, Occur.SHOULD),
            must_not=_clauses(queries, Occur.MUST_NOT),
        )

    def query_type(self) -> FullTextQueryType:
        """Return the kind of the query."""
        return FullTextQueryType.BOOLEAN


def text_query(
    query: str | FullTextQuery | Mapping[str, Any], columns: list[str] | None = None
) -> core.TextQuery:
    """Return a query that was given as a query, as a text, or as a text with columns."""
    if isinstance(query, FullTextQuery):
        return query.inner
    if isinstance(query, Mapping):
        unknown = sorted(set(query) - {"query", "columns"})
        if "query" not in query or unknown:
            raise InvalidRequestError("a full text query has the keys 'query' and 'columns'")
        return text_query(query["query"], query.get("columns"))
    if not isinstance(query, str):
        raise TypeError(f"a full text query is a text or a FullTextQuery, not {type(query)}")
    if columns is not None and not columns:
        raise InvalidRequestError(_NO_COLUMN)
    return words_query(query, columns)


def _in_columns(
    query: str, columns: Sequence[str], boosts: Sequence[float] | None, *, requires_all: bool
) -> core.MultiMatch:
    if not columns:
        raise InvalidRequestError(_NO_COLUMN)
    factors = [1.0] * len(columns) if boosts is None else list(boosts)
    if len(factors) != len(columns):
        raise InvalidRequestError(f"{len(factors)} boosts were given for {len(columns)} columns")
    return core.MultiMatch(
        parts=tuple(
            core.Match(column=column, text=query, boost=boost, requires_all=requires_all)
            for column, boost in zip(columns, factors, strict=True)
        )
    )


def _clauses(
    queries: Sequence[tuple[Occur, FullTextQuery]], occur: Occur
) -> tuple[core.TextQuery, ...]:
    return tuple(query.inner for how, query in queries if Occur(how) is occur)


def _requires_all(operator: FullTextOperator) -> bool:
    return FullTextOperator(operator) is FullTextOperator.AND


def _ensure_rows(granularity: DocumentGranularity | None) -> None:
    if granularity not in (None, DocumentGranularity.ROW):
        raise UnsupportedError("text indices of list elements are not supported")
