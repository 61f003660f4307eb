"""Merge clauses, for any type of expression."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

from lancelake.errors import InvalidRequestError
from lancelake.format.frozen import FrozenMap
from lancelake.format.merged_generation import MergedGeneration

Expression = TypeVar("Expression")
"""Type of conditions and values: SQL text, or Spark columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateAll(Generic[Expression]):
    """Set every column of the source to the source's value."""

    condition: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateSet(Generic[Expression]):
    """Set columns to the values of expressions."""

    values: FrozenMap[str, Expression]
    condition: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRow(Generic[Expression]):
    """Delete the row from the table."""

    condition: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail(Generic[Expression]):
    """Fail the whole merge."""

    condition: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertAll(Generic[Expression]):
    """Insert the source row; missing columns are null."""

    condition: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertValues(Generic[Expression]):
    """Insert a row with the values of expressions; other columns are null."""

    values: FrozenMap[str, Expression]
    condition: Expression | None = None


MatchedBy = UpdateAll[Expression] | UpdateSet[Expression] | DeleteRow[Expression] | Fail[Expression]
NotMatchedBy = InsertAll[Expression] | InsertValues[Expression]
NotMatchedBySourceBy = UpdateSet[Expression] | DeleteRow[Expression]

Matched = MatchedBy[str]
NotMatched = NotMatchedBy[str]
NotMatchedBySource = NotMatchedBySourceBy[str]


class Duplicates(Enum):
    """How source rows with the same key are handled."""

    REFUSE = "refuse"
    LAST_WINS = "last_wins"
    INSERT_ALL = "insert_all"
    """New rows may share a key; a table row is still updated by one source row at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clauses(Generic[Expression]):
    """The clauses of a merge; of each kind, the first whose condition is true applies."""

    matched: tuple[MatchedBy[Expression], ...] = ()
    not_matched: tuple[NotMatchedBy[Expression], ...] = ()
    not_matched_by_source: tuple[NotMatchedBySourceBy[Expression], ...] = ()

    def __post_init__(self) -> None:
        """Refuse a merge that changes nothing."""
        if not (self.matched or self.not_matched or self.not_matched_by_source):
            raise InvalidRequestError(
                "The merge insert job is not configured to change the data in any way",
                action="Add a clause for matched, not matched, or not matched by source rows.",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeSpec(Clauses[str]):
    """A merge: the key, and the clauses.

    Conditions and values refer to columns as `source.x` and `target.x`; those for rows not matched
    by the source refer to the table's columns alone.
    """

    on: tuple[str, ...]
    duplicates: Duplicates = Duplicates.REFUSE
    adds_columns: bool = field(default=False)
    """Whether columns that only the source has are added to the table."""

    casts: bool = False
    """Whether source values of another type are cast if the cast is lossless."""

    use_index: bool = True
    """Whether indices of the key columns find the rows that match."""

    merged_generations: tuple[MergedGeneration, ...] = ()
    """Generations of a MemWAL whose rows the source has."""

    def __post_init__(self) -> None:
        """Refuse a merge without a key, or one that changes nothing."""
        if not self.on:
            raise InvalidRequestError(
                "A merge insert operation requires join keys: specify `on` columns explicitly or "
                "configure a primary key in the dataset schema"
            )
        # Zero-argument super() does not work in a dataclass with slots.
        Clauses.__post_init__(self)
