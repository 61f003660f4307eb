"""Run resolved DELETE, UPDATE and MERGE commands with our own jobs."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import types as t

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InternalError, InvalidRequestError
from lancelake.spark.bounded_text import declared
from lancelake.spark.jobs.engine import SparkEngine
from lancelake.spark.jobs.retry_limits import PATIENCE
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
    translated,
)
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.merge.binding import Binding, ResolvedClause, ResolvedClauses
from lancelake.spark.merge.change import change_rows
from lancelake.spark.merge.keys import key_columns, with_char_keys
from lancelake.spark.merge.run import FrameMerge, merge_frame
from lancelake.spark.planning.writable_table import WritableTable
from lancelake.spark.types import supported_schema
from lancelake.table.idempotent import OnceOnly
from lancelake.table.merge.run import MergeCounts, Merged
from lancelake.table.rows.delete import delete

_TARGET, _SOURCE = "__lance_target", "__lance_source"
_VERBS = {"DeleteFromTable": "DELETE", "UpdateTable": "UPDATE", "MergeIntoTable": "MERGE"}


class RowCommand:
    """One resolved command on one table."""

    def __init__(self, gateway: Gateway, plan: Any) -> None:
        self._door = gateway
        self._plan = plan
        self._target = _target(plan)
        self._binding = Binding.of(gateway, self._target)
        self._table = self._opened()

    def run(
        self,
        base: Snapshot | None = None,
        *,
        once: OnceOnly | None = None,
        adds_columns: pa.Schema | None = None,
    ) -> Merged:
        """Execute the command, by default on the newest version, and commit it.

        A merge may be idempotent, and may add columns to the table.
        """
        version = base or self._table.newest()
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
        session = self._door.spark._jsparkSession
        session.sharedState().cacheManager().recacheByPlan(session, self._target.relation)
        return done

    def _opened(self) -> WritableTable:
        table = self._target.relation.table()
        found = python_object(self._door, table)
        if not isinstance(found, WritableTable):
            raise InvalidRequestError(
                f"{table.name()} is a fixed version, which cannot be changed",
                action="Use the name of the table, or of a branch of it.",
            )
        return found

    def _delete(self, base: Snapshot) -> Merged:
        condition = self._plan.condition()
        holds = column(self._door, condition)
        # Padded values differ from the stored ones.
        is_stored = not set(self._binding.named([holds])) & set(self._binding.padded)
        predicate = translated(self._door, condition) if is_stored else None
        found = self._table.condition(predicate)
        if found is None:
            return self._change(base, holds, self._binding.clause(self._door.none()))
        engine = SparkEngine(self._door.spark)
        done = delete(base, found, engine=engine, retries=PATIENCE, commits_nothing=False)
        counts = MergeCounts(inserted=0, updated=0, deleted=done.rows)
        return Merged(snapshot=done.snapshot, counts=counts)

    def _update(self, base: Snapshot) -> Merged:
        condition = self._plan.condition()
        assignments = self._aligned(self._plan.assignments(), inserts=False)
        clause = self._binding.clause(self._door.none(), assignments)
        holds = column(self._door, condition.get()) if condition.isDefined() else None
        return self._change(base, holds, clause)

    def _change(self, base: Snapshot, condition: Column | None, clause: ResolvedClause) -> Merged:
        return change_rows(
            self._door.spark,
            base,
            condition,
            clause,
            target_name=_TARGET,
            binding=self._binding,
        )

    def _merge(
        self, base: Snapshot, once: OnceOnly | None, adds_columns: pa.Schema | None
    ) -> Merged:
        plan = self._plan
        binding = Binding.of(self._door, self._target, plan.sourceTable())
        condition = column(self._door, plan.mergeCondition())
        chars = _char_columns(self._table.snapshot)
        merge = FrameMerge(
            source=binding.source_frame(plan.sourceTable()),
            condition=with_char_keys(binding, condition, chars) if chars else condition,
            on=key_columns(binding, condition),
            clauses=ResolvedClauses(
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
        return aligned(self._door, self._target.shown.output(), assignments, inserts=inserts)


def run_row_command(gateway: Gateway, plan: Any) -> dict[str, int]:
    """Run a command planned by Spark, and return the numbers of changed rows."""
    counts = RowCommand(gateway, analyzed(gateway, plan)).run().counts
    return {"inserted": counts.inserted, "updated": counts.updated, "deleted": counts.deleted}


def _target(plan: Any) -> BareRelation:
    target = plan.targetTable() if kind(plan) == "MergeIntoTable" else plan.table()
    found = bare_relation(target)
    if found is None:
        name, verb = relation_name(target), _VERBS[kind(plan)]
        raise InvalidRequestError(
            f"{verb} cannot change {name}, which is a view or another query, not a table",
            action="Use the table that it reads.",
        )
    return found


def _char_columns(snapshot: Snapshot) -> set[str]:
    schema = snapshot.manifest.schema
    shown = declared(supported_schema(schema), schema)
    return {field.name for field in shown.fields if isinstance(field.dataType, t.CharType)}
