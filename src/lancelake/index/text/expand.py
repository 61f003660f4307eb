"""Terms of a query: divided, and expanded to similar terms of an index."""

from __future__ import annotations

from collections.abc import Sequence

from lancelake.index.text.analyzer import Analyzer, QueryTerm, query_words
from lancelake.index.text.partition import TextPartition
from lancelake.index.text.query import Match, Phrase
from lancelake.index.text.search import TermSearch
from lancelake.index.text.similar import automatic_distance


def term_search(
    query: Match | Phrase,
    analyzer: Analyzer,
    partitions: Sequence[TextPartition],
    *,
    keeps_exact: bool = False,
) -> TermSearch | None:
    """Return what to search in partitions; None if nothing can match there.

    The limit of similar terms can leave out the terms of the query; `keeps_exact` adds them.
    """
    terms = tuple(analyzer.query_terms(query.text))
    if isinstance(query, Match) and query.fuzziness:
        # As in official releases, the words of the query themselves are compared with terms.
        exact, terms = terms, tuple(query_words(query.text))
    else:
        exact = terms
    if not terms:
        return None
    if isinstance(query, Phrase):
        return TermSearch(terms=terms, requires_all=True, slop=query.slop)
    if query.fuzziness != 0:
        expanded = _expanded(query, terms, partitions)
        if keeps_exact:
            expanded = tuple(dict.fromkeys([*exact, *expanded]))
        lost = {term.position for term in terms} - {term.position for term in expanded}
        if not expanded or (query.requires_all and lost):
            return None
        terms = expanded
    return TermSearch(terms=terms, requires_all=query.requires_all)


def _expanded(
    query: Match, terms: Sequence[QueryTerm], partitions: Sequence[TextPartition]
) -> tuple[QueryTerm, ...]:
    """Return the similar terms of each position, in order, up to a number for the whole query."""
    found: dict[QueryTerm, None] = {}
    by_position: dict[int, dict[str, None]] = {}
    for term in terms:
        by_position.setdefault(term.position, {})[term.text] = None
    for position, sources in sorted(by_position.items()):
        near = {
            word
            for source in sources
            for partition in partitions
            for word in partition.terms.similar.find(
                source, _distance(query, source), query.prefix_length
            )
        }
        room = query.max_expansions - len(found)
        chosen = sorted(near, key=str.encode)[: max(0, room)]
        found |= dict.fromkeys(QueryTerm(word, position) for word in chosen)
    return tuple(found)


def _distance(query: Match, term: str) -> int:
    return automatic_distance(term) if query.fuzziness is None else query.fuzziness
