"""Clauses of a merge as values, whatever kind of expression they use."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

from lancelake.errors import InvalidRequestError
from lancelake.format.frozen import FrozenMap

Expression = TypeVar("Expression")
"""What conditions and values are: SQL text here, columns of Spark there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateAll(Generic[Expression]):
    """Set every column that the source has to the source's value."""

    condition: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateSet(Generic[Expression]):
    """Set columns to the values of expressions."""

    values: FrozenMap[str, Expression]
    condition: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRow(Generic[Expression]):
    """Take the row out of the table."""

    condition: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail(Generic[Expression]):
    """Refuse the whole merge."""

    condition: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertAll(Generic[Expression]):
    """Add the source's row; columns it lacks are null."""

    condition: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertValues(Generic[Expression]):
    """Add a row of the values of expressions; columns not named are null."""

    values: FrozenMap[str, Expression]
    condition: Expression | None = None


MatchedBy = UpdateAll[Expression] | UpdateSet[Expression] | DeleteRow[Expression] | Fail[Expression]
NotMatchedBy = InsertAll[Expression] | InsertValues[Expression]
NotMatchedBySourceBy = UpdateSet[Expression] | DeleteRow[Expression]

Matched = MatchedBy[str]
NotMatched = NotMatchedBy[str]
NotMatchedBySource = NotMatchedBySourceBy[str]


class Duplicates(Enum):
    """What to do when rows of the source share a key."""

    REFUSE = "refuse"
    LAST_WINS = "last_wins"
    INSERT_ALL = "insert_all"
    """New rows may share a key; a row of the table is still changed by one at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clauses(Generic[Expression]):
    """The clauses of a merge; of each kind the first whose condition holds acts."""

    matched: tuple[MatchedBy[Expression], ...] = ()
    not_matched: tuple[NotMatchedBy[Expression], ...] = ()
    not_matched_by_source: tuple[NotMatchedBySourceBy[Expression], ...] = ()

    def __post_init__(self) -> None:
        """Refuse a merge that changes nothing."""
        if not (self.matched or self.not_matched or self.not_matched_by_source):
            raise InvalidRequestError(
                "The merge insert job is not configured to change the data in any way",
                action="Say what to do with rows that match, or with those that do not.",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeSpec(Clauses[str]):
    """A merge: the key, and the clauses.

    Conditions and values name columns as `source.x` and `target.x`; those for rows that the
    source does not match name the table's columns alone.
    """

    on: tuple[str, ...]
    duplicates: Duplicates = Duplicates.REFUSE
    adds_columns: bool = field(default=False)
    """Whether columns that only the source has are added to the table."""

    casts: bool = False
    """Whether source values of another type are converted when nothing is lost."""

    use_index: bool = True
    """Whether indices of the key columns find the rows that match."""

    def __post_init__(self) -> None:
        """Refuse a merge without a key, or one that changes nothing."""
        if not self.on:
            raise InvalidRequestError(
                "A merge insert operation requires join keys: specify `on` columns explicitly or "
                "configure a primary key in the dataset schema"
            )
        # Zero-argument super() does not work in a dataclass with slots.
        Clauses.__post_init__(self)
