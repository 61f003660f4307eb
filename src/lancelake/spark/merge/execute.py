"""Execute merges, updates and deletes of a program.

In classic sessions Spark's analyzer resolves the expressions. Spark Connect does not return
resolved expressions, so they are used as given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pyspark.sql import Column, DataFrame, SparkSession

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import LanceTableError, UnsupportedError
from lancelake.format.frozen import FrozenMap
from lancelake.spark.jvm.gateway import is_classic, open_gateway
from lancelake.spark.merge.change import change_rows
from lancelake.spark.merge.explicit import (
    Change,
    ExplicitClauses,
    Values,
    assigned_column,
    explicit,
    source_values,
)
from lancelake.spark.merge.run import FrameMerge, merge_frame
from lancelake.spark.types import arrow_schema
from lancelake.table.idempotent import OnceOnly
from lancelake.table.merge.clauses import Clauses, DeleteRow, InsertValues, UpdateSet
from lancelake.table.merge.run import Merged
from lancelake.table.write import widened_schema

_Clause = TypeVar("_Clause", UpdateSet[Column], InsertValues[Column])


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


def execute_merge(base: Snapshot, request: MergeRequest, once: OnceOnly | None = None) -> Merged:
    """Merge a frame into a table and commit."""
    with _located(base):
        added = arrow_schema(request.source.schema) if request.adds_columns else None
        known = base if added is None else _with_columns(base, added)
        columns = known.manifest.schema.names
        clauses = explicit(
            request.clauses,
            lambda: source_values(request.source.columns, request.source_name, columns),
        )
        _ensure_assignable(clauses, request.target_name, columns)
        if is_classic(request.source.sparkSession):
            commands = _commands(request.source.sparkSession, known, request.target_name)
            plan = commands.merge(
                request.source,
                request.source_name,
                request.condition,
                matched=clauses.matched,
                not_matched=clauses.not_matched,
                not_matched_by_source=clauses.not_matched_by_source,
            )
            return _run(commands, plan, base, once=once, adds_columns=added)
        merge = FrameMerge(
            source=request.source,
            condition=request.condition,
            on=request.keys or _keys_on_connect(request),
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
) -> Merged:
    """Update or delete the rows that match a condition, and commit."""
    with _located(base):
        columns = base.manifest.schema.names
        clauses = ExplicitClauses(matched=(clause,))
        _ensure_assignable(clauses, target_name, columns)
        if is_classic(spark):
            commands = _commands(spark, base, target_name)
            if isinstance(clause, DeleteRow):
                plan = commands.delete(condition)
            else:
                plan = commands.update(clause.values, condition)
            return _run(commands, plan, base)
        (plain,) = _by_plain_names(clauses, target_name, columns).matched
        return change_rows(spark, base, condition, plain, target_name=target_name)


@contextmanager
def _located(base: Snapshot) -> Iterator[None]:
    try:
        yield
    except LanceTableError as error:
        raise error.at(base.location.uri, base.version) from error.__cause__


def _with_columns(base: Snapshot, added: Any) -> Snapshot:
    """Return the version with additional columns, without committing it."""
    manifest = replace(base.manifest, schema=widened_schema(base, added))
    return replace(base, file=replace(base.file, manifest=manifest))


def _commands(spark: SparkSession, base: Snapshot, target_name: str) -> Any:
    from lancelake.spark.jvm.commands import Commands  # noqa: PLC0415  # classic sessions only
    from lancelake.spark.planning.writable_table import WritableTable  # noqa: PLC0415

    gateway = open_gateway(spark)
    table = WritableTable(gateway, base, f"lance.`{base.location.uri}`")
    return Commands(gateway=gateway, table=table, alias=target_name)


def _run(commands: Any, plan: Any, base: Snapshot, **options: Any) -> Merged:
    from lancelake.spark.merge.row_commands import RowCommand  # noqa: PLC0415  # classic sessions only

    return RowCommand(commands.gateway, plan).run(base, **options)


def _keys_on_connect(request: MergeRequest) -> tuple[str, ...]:
    from lancelake.spark.merge.connect_keys import connect_key_columns  # noqa: PLC0415

    names = (request.target_name, request.source_name)
    return connect_key_columns(request.source.sparkSession, request.condition, *names)


def _ensure_assignable(clauses: ExplicitClauses, target_name: str, columns: Sequence[str]) -> None:
    every = (*clauses.matched, *clauses.not_matched, *clauses.not_matched_by_source)
    for clause in every:
        for name in () if isinstance(clause, DeleteRow) else clause.values:
            assigned_column(name, target_name, columns)


def _by_plain_names(
    clauses: ExplicitClauses, target_name: str, columns: Sequence[str]
) -> ExplicitClauses:
    """Return clauses that assign values to columns by their plain names."""

    def plain(clause: _Clause) -> _Clause:
        return replace(clause, values=_plain_values(clause.values, target_name, columns))

    def changes(found: tuple[Change, ...]) -> tuple[Change, ...]:
        return tuple(c if isinstance(c, DeleteRow) else plain(c) for c in found)

    return ExplicitClauses(
        matched=changes(clauses.matched),
        not_matched=tuple(plain(clause) for clause in clauses.not_matched),
        not_matched_by_source=changes(clauses.not_matched_by_source),
    )


def _plain_values(
    values: Values, target_name: str, columns: Sequence[str]
) -> FrozenMap[str, Column]:
    found: dict[str, Column] = {}
    for name, value in values.items():
        column, is_part = assigned_column(name, target_name, columns)
        if is_part:
            raise UnsupportedError(
                f"{name} is a field of column {column}, which cannot be set on Spark Connect",
                action="Set the whole column, or use a classic session.",
            )
        found[column] = value
    return FrozenMap(found)
