"""Full text queries as values: match, phrase, boost, boolean and multi-match."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.errors import InvalidRequestError

DEFAULT_MAX_EXPANSIONS = 50
_LARGEST = float.fromhex("0x1.fffffep127")
"""Scores are 32-bit numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Rows whose text contains any of the terms of a query, or all of them.

    `fuzziness` is the largest edit distance of a term; None derives it from the length of the term.
    """

    column: str | None
    text: str
    boost: float = 1.0
    requires_all: bool = False
    fuzziness: int | None = 0
    prefix_length: int = 0
    max_expansions: int = DEFAULT_MAX_EXPANSIONS

    def __post_init__(self) -> None:
        _ensure_factor("boost", self.boost)
        _ensure_not_negative("fuzziness", self.fuzziness or 0)
        _ensure_not_negative("prefix_length", self.prefix_length)
        _ensure_not_negative("max_expansions", self.max_expansions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrase:
    """Rows that contain the terms in order, each at most `slop` positions late."""

    column: str | None
    text: str
    slop: int = 0

    def __post_init__(self) -> None:
        _ensure_not_negative("slop", self.slop)


@dataclass(frozen=True, slots=True, kw_only=True)
class Boost:
    """Rows of one query; the score of those that match another is reduced."""

    positive: TextQuery
    negative: TextQuery
    negative_boost: float = 0.5

    def __post_init__(self) -> None:
        _ensure_factor("negative_boost", self.negative_boost)


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiMatch:
    """Rows that match in at least one column, with the score of the best one."""

    parts: tuple[Match, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Boolean:
    """Rows that match all of `must`, or any of `should` without it, and none of `must_not`."""

    must: tuple[TextQuery, ...] = ()
    should: tuple[TextQuery, ...] = ()
    must_not: tuple[TextQuery, ...] = ()

    def __post_init__(self) -> None:
        if not self.must and not self.should:
            raise InvalidRequestError("boolean query must have at least one should/must query")


TextQuery = Match | Phrase | Boost | MultiMatch | Boolean


def _ensure_factor(name: str, value: float) -> None:
    if not 0 <= value <= _LARGEST:
        raise InvalidRequestError(f"{name} must be finite and not negative, got {value!r}")


def _ensure_not_negative(name: str, value: int) -> None:
    if value < 0:
        raise InvalidRequestError(f"{name} must not be negative, got {value}")
