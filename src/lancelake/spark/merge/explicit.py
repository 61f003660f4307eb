"""Merge clauses with every column spelled out in place of stars."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from pyspark.sql import Column
from pyspark.sql import functions as f

from lancelake.errors import InvalidRequestError, SchemaMismatchError, UnsupportedError
from lancelake.format.column_path import quoted_name
from lancelake.format.frozen import FrozenMap
from lancelake.suggest import suggestion
from lancelake.table.merge.clauses import (
    Clauses,
    DeleteRow,
    Fail,
    InsertAll,
    InsertValues,
    MatchedBy,
    NotMatchedBy,
    UpdateAll,
    UpdateSet,
)

Change = UpdateSet[Column] | DeleteRow[Column]
ExplicitClause = Change | InsertValues[Column]
Values = Mapping[str, Column]

_NAME_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplicitClauses:
    """The clauses of a merge; of each kind, the first whose condition is true applies."""

    matched: tuple[Change, ...] = ()
    not_matched: tuple[InsertValues[Column], ...] = ()
    not_matched_by_source: tuple[Change, ...] = ()


def explicit(clauses: Clauses[Column], star: Callable[[], Values]) -> ExplicitClauses:
    """Return clauses in which stars are replaced with the values of `star`."""
    return ExplicitClauses(
        matched=tuple(_change(clause, star) for clause in clauses.matched),
        not_matched=tuple(_insert(clause, star) for clause in clauses.not_matched),
        not_matched_by_source=clauses.not_matched_by_source,
    )


def source_values(source: Sequence[str], source_name: str, target: Sequence[str]) -> Values:
    """Return the columns of the source, each for the table column of the same name."""
    known = {name.lower() for name in target}
    unknown = [name for name in source if name.lower() not in known]
    if unknown:
        raise SchemaMismatchError(
            f"the source has columns that the table does not have: {', '.join(unknown)}",
            path=unknown[0],
            action="Drop them from the source, or use withSchemaEvolution().",
        )
    return {
        quoted_name(name): f.col(f"{quoted_name(source_name)}.{quoted_name(name)}")
        for name in source
    }


def assigned_column(name: str, target_name: str, columns: Sequence[str]) -> tuple[str, bool]:
    """Return the table column of an assignment, and whether it assigns only a field of it."""
    parts = name_parts(name)
    if len(parts) > 1 and parts[0].lower() == target_name.lower():
        parts = parts[1:]
    by_lower = {column.lower(): column for column in columns}
    column = by_lower.get(parts[0].lower()) if parts else None
    if column is None:
        problem = f"column {name} is not in the table"
        advice = suggestion(name, columns, "columns")
        raise InvalidRequestError(problem, column=name, action=advice)
    return column, len(parts) > 1


def name_parts(name: str) -> list[str]:
    """Return the parts of a name in Spark's syntax, without quotes."""
    return [(a or b).replace("``", "`") for a, b in _NAME_PART.findall(name)]


def _change(clause: MatchedBy[Column], star: Callable[[], Values]) -> Change:
    match clause:
        case UpdateAll(condition=condition):
            return UpdateSet(values=FrozenMap(star()), condition=condition)
        case UpdateSet() | DeleteRow():
            return clause
        case Fail():
            raise UnsupportedError("Spark merges have no failing clause")
        case _:
            assert_never(clause)


def _insert(clause: NotMatchedBy[Column], star: Callable[[], Values]) -> InsertValues[Column]:
    match clause:
        case InsertAll(condition=condition):
            return InsertValues(values=FrozenMap(star()), condition=condition)
        case InsertValues():
            return clause
        case _:
            assert_never(clause)
