"""Updates and deletes of rows on executors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from lancelake.core.values.metadata import Snapshot
from lancelake.core.values.writes import (
    DEFAULT_CHOICES,
    CommitChoices,
    DeleteRow,
    OnceOnly,
    Retries,
    RowsChanged,
    retry_on_newest,
)
from lancelake.errors import InternalError, InvalidRequestError, naming
from lancelake.spark.connector.writable_table import WritableTable
from lancelake.spark.jobs.binding import (
    Binding,
    ResolvedClause,
    key_columns,
    with_char_keys,
)
from lancelake.spark.jobs.engine import PATIENCE, SparkEngine
from lancelake.spark.jobs.merge import FrameMerge, merge_frame
from lancelake.spark.jobs.row_maker import (
    ExplicitClause,
    RowClauses,
    RowMaker,
    addressed_frame,
    maker_of,
)
from lancelake.spark.jobs.rows_out import ADDRESS, ROW_ID
from lancelake.spark.jvm.catalyst import (
    BareRelation,
    aligned,
    analyzed,
    bare_relation,
    column,
    items,
    kind,
    python_object,
    relation_name,
    translate,
)
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.tasks.columns import empty_frame
from lancelake.spark.values.spark_types import declared, supported_schema
from lancelake.table.row_steps import commit_rows
from lancelake.table.rows import delete


def change_rows(
    spark: SparkSession,
    base: Snapshot,
    condition: Column | None,
    clauses: RowClauses[Any],
    *,
    target_name: str = "target",
    binding: Binding | None = None,
    choices: CommitChoices = DEFAULT_CHOICES,
    retries: Retries = PATIENCE,
) -> RowsChanged:
    """Update or delete the rows that match a condition, by the clause for matched rows.

    This runs on the executors, and is retried after conflicts.
    """
    (clause,) = clauses.matched
    choices = choices.named("DELETE" if _deletes(clause) else "UPDATE", base.location)

    def attempt(version: Snapshot) -> RowsChanged:
        maker = maker_of(version, target_name, binding=binding, clauses=clauses)
        if condition is None:
            rows = addressed_frame(spark, version, ())
        else:
            rows = _rows_where(spark, maker, condition, target_name)
        rows = rows.select(f.col(ADDRESS), f.col(ROW_ID))
        parts = maker.rows.write([maker.changed(rows, clauses.matched)], None, "change rows of")
        if not parts.changes:
            return RowsChanged(snapshot=version)
        return commit_rows(version, parts.change, choices.within(retries))

    return retry_on_newest(base, attempt, retries)


def _deletes(clause: ExplicitClause | ResolvedClause) -> bool:
    if isinstance(clause, ResolvedClause):
        return clause.assigns is None
    return isinstance(clause, DeleteRow)


def _rows_where(
    spark: SparkSession, maker: RowMaker[Any], condition: Column, target_name: str
) -> DataFrame:
    """Return the rows that match a condition, reading only the columns it refers to."""

    def build(columns: Sequence[str]) -> DataFrame:
        fields = [maker.rows.schema[name] for name in columns]
        return empty_frame(spark, fields).alias(target_name).where(condition)

    return maker.addressed(spark, condition, build).alias(target_name).where(condition)


_TARGET, _SOURCE = "__lance_target", "__lance_source"
_VERBS = {"DeleteFromTable": "DELETE", "UpdateTable": "UPDATE", "MergeIntoTable": "MERGE"}


class RowCommand:
    """One resolved command on one table."""

    def __init__(self, gateway: Gateway, plan: Any) -> None:
        self._gateway = gateway
        self._plan = plan
        self._target = _target(plan)
        self._binding = Binding.of(gateway, self._target)
        self._table = self._writable_table()

    def run(
        self,
        base: Snapshot | None = None,
        *,
        once: OnceOnly | None = None,
        adds_columns: pa.Schema | None = None,
    ) -> RowsChanged:
        """Execute the command, by default on the newest version, and commit it.

        A merge may be idempotent, and may add columns to the table.
        """
        version = base or self._table.newest()
        with naming(version.location.uri, version.version):
            match kind(self._plan):
                case "DeleteFromTable":
                    done = self._delete(version)
                case "UpdateTable":
                    done = self._update(version)
                case "MergeIntoTable":
                    done = self._merge(version, once, adds_columns)
                case other:
                    raise InternalError(f"{other} is not a row-level command")
        # Cached data of the table is invalidated.
        session = self._gateway.spark._jsparkSession
        session.sharedState().cacheManager().recacheByPlan(session, self._target.relation)
        return done

    def _writable_table(self) -> WritableTable:
        table = self._target.relation.table()
        writable = python_object(self._gateway, table)
        if not isinstance(writable, WritableTable):
            raise InvalidRequestError(
                f"{table.name()} is a fixed version, which cannot be changed",
                action="Use the name of the table, or of a branch of it.",
            )
        return writable

    def _delete(self, base: Snapshot) -> RowsChanged:
        condition = self._plan.condition()
        holds = column(self._gateway, condition)
        # Padded values differ from the stored ones.
        is_stored = not set(self._binding.named([holds])) & set(self._binding.padded)
        predicate = translate(self._gateway, condition) if is_stored else None
        stored = self._table.condition(predicate)
        if stored is None:
            return self._change(base, holds, self._binding.clause(self._gateway.none()))
        engine = SparkEngine(self._gateway.spark)
        return delete(base, stored, engine=engine, retries=PATIENCE, commits_nothing=False)

    def _update(self, base: Snapshot) -> RowsChanged:
        condition = self._plan.condition()
        assignments = self._aligned(self._plan.assignments(), inserts=False)
        clause = self._binding.clause(self._gateway.none(), assignments)
        holds = column(self._gateway, condition.get()) if condition.isDefined() else None
        return self._change(base, holds, clause)

    def _change(
        self, base: Snapshot, condition: Column | None, clause: ResolvedClause
    ) -> RowsChanged:
        return change_rows(
            self._gateway.spark,
            base,
            condition,
            RowClauses(matched=(clause,)),
            target_name=_TARGET,
            binding=self._binding,
        )

    def _merge(
        self, base: Snapshot, once: OnceOnly | None, adds_columns: pa.Schema | None
    ) -> RowsChanged:
        plan = self._plan
        binding = Binding.of(self._gateway, self._target, plan.sourceTable())
        condition = column(self._gateway, plan.mergeCondition())
        chars = _char_columns(self._table.snapshot)
        merge = FrameMerge(
            source=binding.source_frame(plan.sourceTable()),
            condition=with_char_keys(binding, condition, chars) if chars else condition,
            on=key_columns(binding, condition),
            clauses=RowClauses(
                matched=self._clauses(plan.matchedActions()),
                not_matched=self._clauses(plan.notMatchedActions(), inserts=True),
                not_matched_by_source=self._clauses(plan.notMatchedBySourceActions()),
            ),
            target_name=_TARGET,
            source_name=_SOURCE,
            adds_columns=adds_columns,
            binding=binding,
        )
        return merge_frame(base, merge, once=once)

    def _clauses(self, actions: Any, *, inserts: bool = False) -> tuple[ResolvedClause, ...]:
        return tuple(self._clause(action, inserts=inserts) for action in items(actions))

    def _clause(self, action: Any, *, inserts: bool) -> ResolvedClause:
        if kind(action) == "DeleteAction":
            return self._binding.clause(action.condition())
        assignments = self._aligned(action.assignments(), inserts=inserts)
        return self._binding.clause(action.condition(), assignments)

    def _aligned(self, assignments: Any, *, inserts: bool) -> Any:
        return aligned(self._gateway, self._target.shown.output(), assignments, inserts=inserts)


def run_row_command(gateway: Gateway, plan: Any) -> dict[str, int]:
    """Run a command planned by Spark, and return the numbers of changed rows."""
    counts = RowCommand(gateway, analyzed(gateway, plan)).run().counts
    return {"inserted": counts.inserted, "updated": counts.updated, "deleted": counts.deleted}


def _target(plan: Any) -> BareRelation:
    target = plan.targetTable() if kind(plan) == "MergeIntoTable" else plan.table()
    relation = bare_relation(target)
    if relation is None:
        name, verb = relation_name(target), _VERBS[kind(plan)]
        raise InvalidRequestError(
            f"{verb} cannot change {name}, which is a view or another query, not a table",
            action="Use the table that it reads.",
        )
    return relation


def _char_columns(snapshot: Snapshot) -> set[str]:
    schema = snapshot.manifest.schema
    shown = declared(supported_schema(schema), schema)
    return {field.name for field in shown.fields if isinstance(field.dataType, t.CharType)}
