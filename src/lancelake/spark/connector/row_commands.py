"""Execution of row commands.

In classic sessions Spark's analyzer resolves the expressions. Spark Connect does not return
resolved expressions, so they are used as given.

The server resolves a condition and does not return the result, so only equalities between columns
that are qualified with the aliases of both sides can be found. A condition as text is only parsed
by the server, and has no key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from lancelake.core.values.metadata import FrozenMap, Snapshot, quoted_name
from lancelake.core.values.writes import (
    Clauses,
    DeleteRow,
    Fail,
    InsertAll,
    InsertValues,
    OnceOnly,
    RowsChanged,
    UpdateAll,
    UpdateSet,
)
from lancelake.errors import (
    InvalidRequestError,
    SchemaMismatchError,
    UnsupportedError,
    naming,
    suggestion,
)
from lancelake.spark.connector.change import RowCommand, change_rows
from lancelake.spark.connector.writable_table import WritableTable
from lancelake.spark.jobs.merge import FrameMerge, merge_frame
from lancelake.spark.jobs.row_maker import Change, ExplicitClause, RowClauses
from lancelake.spark.jvm.gateway import is_classic, open_gateway
from lancelake.spark.jvm.row_commands import Commands
from lancelake.spark.values.spark_types import arrow_schema, nullable_schema
from lancelake.table.columns.alter import widened_schema
from lancelake.table.merge.clauses import MatchedBy, NotMatchedBy

Values = Mapping[str, Column]

_NAME_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRequest:
    """A merge of a frame as requested by a program.

    `keys` are the columns compared for equality by the condition, if the caller knows them.
    """

    source: DataFrame
    condition: Column
    clauses: Clauses[Column]
    keys: tuple[str, ...] = ()
    target_name: str = "target"
    source_name: str = "source"
    adds_columns: bool = False


def execute_merge(
    base: Snapshot, request: MergeRequest, once: OnceOnly | None = None
) -> RowsChanged:
    """Merge a frame into a table and commit."""
    with naming(base.location.uri, base.version):
        added = None
        if request.adds_columns:
            added = arrow_schema(nullable_schema(request.source.schema))
        wide = base if added is None else _with_columns(base, added)
        columns = wide.manifest.schema.names
        clauses = _without_stars(request, columns)
        _ensure_assignable(clauses, request.target_name, columns)
        if is_classic(request.source.sparkSession):
            commands = _commands(request.source.sparkSession, wide, request.target_name)
            plan = commands.merge(
                request.source,
                request.source_name,
                request.condition,
                matched=clauses.matched,
                not_matched=clauses.not_matched,
                not_matched_by_source=clauses.not_matched_by_source,
            )
            command = RowCommand(commands.gateway, plan)
            return command.run(base, once=once, adds_columns=added)
        merge = FrameMerge(
            source=request.source,
            condition=request.condition,
            on=request.keys or connect_key_columns(request),
            clauses=_by_plain_names(clauses, request.target_name, columns),
            target_name=request.target_name,
            source_name=request.source_name,
            adds_columns=added,
        )
        return merge_frame(base, merge, once=once)


def execute_change(
    spark: SparkSession,
    base: Snapshot,
    condition: Column | None,
    clause: Change,
    *,
    target_name: str = "target",
) -> RowsChanged:
    """Update or delete the rows that match a condition, and commit."""
    with naming(base.location.uri, base.version):
        columns = base.manifest.schema.names
        clauses: RowClauses[ExplicitClause] = RowClauses(matched=(clause,))
        _ensure_assignable(clauses, target_name, columns)
        if is_classic(spark):
            commands = _commands(spark, base, target_name)
            if isinstance(clause, DeleteRow):
                plan = commands.delete(condition)
            else:
                plan = commands.update(clause.values, condition)
            return RowCommand(commands.gateway, plan).run(base)
        plain = _by_plain_names(clauses, target_name, columns)
        return change_rows(spark, base, condition, plain, target_name=target_name)


def _with_columns(base: Snapshot, added: Any) -> Snapshot:
    """Return the version with additional columns, without committing it."""
    manifest = replace(base.manifest, schema=widened_schema(base, added))
    return replace(base, file=replace(base.file, manifest=manifest))


def _commands(spark: SparkSession, base: Snapshot, target_name: str) -> Commands:
    gateway = open_gateway(spark)
    table = WritableTable(gateway, base, f"lance.`{base.location.uri}`")
    return Commands(gateway=gateway, table=table, alias=target_name)


def _without_stars(request: MergeRequest, columns: Sequence[str]) -> RowClauses[ExplicitClause]:
    """Return the clauses with every column spelled out."""

    def spell_out(clause: MatchedBy[Column] | NotMatchedBy[Column]) -> ExplicitClause:
        match clause:
            case UpdateAll(condition=condition):
                return UpdateSet(values=_source_values(request, columns), condition=condition)
            case InsertAll(condition=condition):
                return InsertValues(values=_source_values(request, columns), condition=condition)
            case Fail():
                raise UnsupportedError("Spark merges have no failing clause")
            case _:
                return clause

    clauses = request.clauses
    return RowClauses(
        matched=tuple(map(spell_out, clauses.matched)),
        not_matched=tuple(map(spell_out, clauses.not_matched)),
        not_matched_by_source=clauses.not_matched_by_source,
    )


def _source_values(request: MergeRequest, target: Sequence[str]) -> FrozenMap[str, Column]:
    """Return the columns of the source, each for the table column of the same name."""
    columns, names = {name.lower() for name in target}, request.source.columns
    unknown = [name for name in names if name.lower() not in columns]
    if unknown:
        raise SchemaMismatchError(
            f"the source has columns that the table does not have: {', '.join(unknown)}",
            path=unknown[0],
            action="Drop them from the source, or use withSchemaEvolution().",
        )
    side = quoted_name(request.source_name)
    return FrozenMap({quoted_name(name): f.col(f"{side}.{quoted_name(name)}") for name in names})


def _ensure_assignable(
    clauses: RowClauses[ExplicitClause], target_name: str, columns: Sequence[str]
) -> None:
    for clause in clauses.every:
        for name in () if isinstance(clause, DeleteRow) else clause.values:
            assigned_column(name, target_name, columns)


def _by_plain_names(
    clauses: RowClauses[ExplicitClause], target_name: str, columns: Sequence[str]
) -> RowClauses[ExplicitClause]:
    """Return clauses that assign values to columns by their plain names."""

    def plain(clause: ExplicitClause) -> ExplicitClause:
        if isinstance(clause, DeleteRow):
            return clause
        return replace(clause, values=_plain_values(clause.values, target_name, columns))

    return RowClauses(
        matched=tuple(map(plain, clauses.matched)),
        not_matched=tuple(map(plain, clauses.not_matched)),
        not_matched_by_source=tuple(map(plain, clauses.not_matched_by_source)),
    )


def _plain_values(
    values: Values, target_name: str, columns: Sequence[str]
) -> FrozenMap[str, Column]:
    plain: dict[str, Column] = {}
    for name, value in values.items():
        column, is_part = assigned_column(name, target_name, columns)
        if is_part:
            raise UnsupportedError(
                f"{name} is a field of column {column}, which cannot be set on Spark Connect",
                action="Set the whole column, or use a classic session.",
            )
        plain[column] = value
    return FrozenMap(plain)


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


_EQUALITIES = ("==", "<=>")


def connect_key_columns(request: MergeRequest) -> tuple[str, ...]:
    """Return the columns of the table that a condition compares for equality with the source."""
    session: Any = request.source.sparkSession
    condition: Any = request.condition
    target, source = request.target_name.lower(), request.source_name.lower()
    columns: dict[str, None] = {}
    for part in _conjuncts(condition.to_plan(session.client)):
        call = part.unresolved_function
        if call.function_name in _EQUALITIES:
            names = dict(_reference(argument) for argument in call.arguments)
            if set(names) == {target, source} and all(names.values()):
                columns[names[target]] = None
    return tuple(columns)


def _conjuncts(expression: Any) -> Iterator[Any]:
    if expression.unresolved_function.function_name == "and":
        for argument in expression.unresolved_function.arguments:
            yield from _conjuncts(argument)
    else:
        yield expression


def _reference(expression: Any) -> tuple[str, str]:
    """Return the side and the column of a column reference; empty for other expressions."""
    parts = name_parts(expression.unresolved_attribute.unparsed_identifier)
    return (parts[0].lower(), parts[1]) if len(parts) == 2 else ("", "")  # noqa: PLR2004
