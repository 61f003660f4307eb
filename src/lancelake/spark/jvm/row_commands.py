"""DELETE, UPDATE and MERGE as commands of Catalyst."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, assert_never

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from lancelake.core.values.writes import DeleteRow, InsertValues, UpdateSet
from lancelake.spark.jvm.catalyst import expression, kind, seq
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.jvm.session_tables import relation_over

_PLANS = "org.apache.spark.sql.catalyst.plans.logical"

Clause = UpdateSet[Column] | DeleteRow[Column] | InsertValues[Column]


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """Builds commands on one table, which expressions refer to by `alias`."""

    gateway: Gateway
    table: Any
    alias: str

    def delete(self, condition: Column | None) -> Any:
        """Return the resolved DELETE command."""
        holds = self._expression(f.lit(True) if condition is None else condition)
        return self._resolve(self._make("DeleteFromTable", self._target(), holds))

    def update(self, values: Mapping[str, Column], condition: Column | None) -> Any:
        """Return the resolved UPDATE command."""
        assignments = self._assignments(values)
        holds = self._optional(condition)
        return self._resolve(self._make("UpdateTable", self._target(), assignments, holds))

    def merge(
        self,
        source: DataFrame,
        name: str,
        condition: Column,
        *,
        matched: Iterable[Clause],
        not_matched: Iterable[Clause],
        not_matched_by_source: Iterable[Clause],
    ) -> Any:
        """Return the resolved MERGE command of a frame, which expressions refer to by `name`."""
        plan = source._jdf.queryExecution().analyzed()
        if kind(plan) != "SubqueryAlias":
            plan = self._name_plan(name, plan)
        command = self._make(
            "MergeIntoTable",
            self._target(),
            plan,
            self._expression(condition),
            self._actions(matched),
            self._actions(not_matched),
            self._actions(not_matched_by_source),
            False,  # columns are added beforehand
        )
        return self._resolve(command)

    def _target(self) -> Any:
        return self._name_plan(self.alias, relation_over(self.gateway, self.table))

    def _actions(self, clauses: Iterable[Clause]) -> Any:
        return seq(self.gateway, [self._action(clause) for clause in clauses])

    def _action(self, clause: Clause) -> Any:
        holds = self._optional(clause.condition)
        match clause:
            case DeleteRow():
                return self._make("DeleteAction", holds)
            case InsertValues(values=values):
                return self._make("InsertAction", holds, self._assignments(values))
            case UpdateSet(values=values):
                # The last argument states that the assignments are not a star.
                return self._make("UpdateAction", holds, self._assignments(values), False)
            case _:
                assert_never(clause)

    def _assignments(self, values: Mapping[str, Column]) -> Any:
        pairs = [
            self._make("Assignment", self._expression(f.col(name)), self._expression(value))
            for name, value in values.items()
        ]
        return seq(self.gateway, pairs)

    def _name_plan(self, name: str, plan: Any) -> Any:
        aliases = self.gateway.cls(f"{_PLANS}.SubqueryAlias$")
        return getattr(aliases, "MODULE$").apply(name, plan)

    def _make(self, name: str, *arguments: Any) -> Any:
        return self.gateway.cls(f"{_PLANS}.{name}")(*arguments)

    def _expression(self, column: Column) -> Any:
        return expression(self.gateway, column)

    def _optional(self, column: Column | None) -> Any:
        if column is None:
            return self.gateway.none()
        return self.gateway.member("scala.Option", "apply")(self._expression(column))

    def _resolve(self, plan: Any) -> Any:
        modes = self.gateway.cls("org.apache.spark.sql.execution.CommandExecutionMode")
        state = self.gateway.session_state()
        return state.executePlan(plan, modes.SKIP()).analyzed()
