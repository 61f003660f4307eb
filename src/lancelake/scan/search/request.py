"""Search request: a query vector, a text query or both, and a filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError
from lancelake.expr.predicate import Filter
from lancelake.format.frozen import FrozenMap
from lancelake.index.stored_segment import indexed_type
from lancelake.index.text.query import Match, MultiMatch, Phrase, TextQuery
from lancelake.index.vector.vectors import VectorType
from lancelake.scan.nearest import DEFAULT_K, Nearest
from lancelake.scan.search.fusion import Fusion

_LEAST_CANDIDATES = 100
_QUOTE = '"'


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """The `k` best rows of a vector search, a text search, or both fused.

    `k` replaces that of `nearest`. Each search of a hybrid one returns up to `candidates` rows to
    fuse. The filter is applied before the search unless `prefilter` is False.
    """

    nearest: Nearest | None = None
    text: TextQuery | None = None
    k: int = DEFAULT_K
    filter: Filter | None = None
    prefilter: bool = True
    columns: tuple[str, ...] | FrozenMap[str, str] | None = None
    with_row_id: bool = False
    fast_search: bool = False
    candidates: int | None = None
    fusion: Fusion | None = None
    """Fusion of a hybrid search; None is that of reciprocal ranks."""
    use_scalar_index: bool = True

    def __post_init__(self) -> None:
        if self.nearest is None and self.text is None:
            raise InvalidRequestError("a search needs a query vector, a text, or both")
        if self.k <= 0:
            raise InvalidRequestError(f"k must be > 0 but got {self.k}")
        if not self.is_hybrid and (self.fusion is not None or self.candidates is not None):
            problem = "only a search by text and vector is fused; specify both queries"
            raise InvalidRequestError(problem)
        if self.candidates is not None and self.candidates < self.k:
            problem = f"candidates must not be fewer than k ({self.k}), got {self.candidates}"
            raise InvalidRequestError(problem)

    @property
    def is_hybrid(self) -> bool:
        """Whether the results of two searches are fused."""
        return self.nearest is not None and self.text is not None

    @property
    def rows_per_search(self) -> int:
        """Number of rows that each search returns: more than `k` if they are fused."""
        if not self.is_hybrid:
            return self.k
        return self.candidates or max(_LEAST_CANDIDATES, 2 * self.k)


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
