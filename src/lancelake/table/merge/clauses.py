"""What a merge does with rows: clauses as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from lancelake.errors import InvalidRequestError
from lancelake.format.frozen import FrozenMap


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateAll:
    """Set every column that the source has to the source's value."""

    condition: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateSet:
    """Set columns to the values of expressions."""

    values: FrozenMap[str, str]
    condition: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRow:
    """Take the row out of the table."""

    condition: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    """Refuse the whole merge."""

    condition: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertAll:
    """Add the source's row; columns it lacks are null."""

    condition: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertValues:
    """Add a row of the values of expressions; columns not named are null."""

    values: FrozenMap[str, str]
    condition: str | None = None


Matched = UpdateAll | UpdateSet | DeleteRow | Fail
NotMatched = InsertAll | InsertValues
NotMatchedBySource = UpdateSet | DeleteRow


class Duplicates(Enum):
    """What to do when rows of the source share a key."""

    REFUSE = "refuse"
    LAST_WINS = "last_wins"
    INSERT_ALL = "insert_all"
    """New rows may share a key; a row of the table is still changed by one at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeSpec:
    """A merge: the key, and the clauses; of each kind the first whose condition holds acts.

    Conditions and values name columns as `source.x` and `target.x`; those for rows that the
    source does not match name the table's columns alone.
    """

    on: tuple[str, ...]
    matched: tuple[Matched, ...] = ()
    not_matched: tuple[NotMatched, ...] = ()
    not_matched_by_source: tuple[NotMatchedBySource, ...] = ()
    duplicates: Duplicates = Duplicates.REFUSE
    adds_columns: bool = field(default=False)
    """Whether columns that only the source has are added to the table."""

    casts: bool = False
    """Whether source values of another type are converted when nothing is lost."""

    def __post_init__(self) -> None:
        """Refuse a merge that changes nothing."""
        if not self.on:
            raise InvalidRequestError(
                "A merge insert operation requires join keys: specify `on` columns explicitly or "
                "configure a primary key in the dataset schema"
            )
        if not (self.matched or self.not_matched or self.not_matched_by_source):
            raise InvalidRequestError(
                "The merge insert job is not configured to change the data in any way",
                action="Say what to do with rows that match, or with those that do not.",
            )
