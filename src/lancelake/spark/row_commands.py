"""DELETE, UPDATE and MERGE of SQL: Spark resolves them, our own jobs run them."""

from __future__ import annotations

from typing import Any

from lancelake.errors import InternalError, InvalidRequestError
from lancelake.spark.engine import SparkEngine
from lancelake.spark.jvm.catalyst import (
    aligned,
    analyzed,
    column,
    frame,
    items,
    kind,
    python_object,
    relation_of,
    translated,
)
from lancelake.spark.jvm.door import Door
from lancelake.spark.merge.binding import Binding
from lancelake.spark.merge.change import change_rows
from lancelake.spark.merge.clauses import Clause, Clauses, Remove, SetColumns
from lancelake.spark.merge.run import FrameMerge, merge_frame
from lancelake.spark.patience import PATIENCE
from lancelake.spark.planning.writable_table import WritableTable
from lancelake.table.rows.delete import delete

_TARGET, _SOURCE = "__lance_target", "__lance_source"


class RowCommand:
    """One command on one table."""

    def __init__(self, door: Door, plan: Any) -> None:
        self._door = door
        self._plan = analyzed(door, plan)
        target = self._plan.targetTable() if kind(plan) == "MergeIntoTable" else self._plan.table()
        self._relation = relation_of(target)
        self._attributes = {a.name(): a for a in items(self._relation.output())}
        self._table = self._opened()

    def run(self) -> None:
        """Do what the command says and commit it."""
        match kind(self._plan):
            case "DeleteFromTable":
                self._delete()
            case "UpdateTable":
                self._update()
            case "MergeIntoTable":
                self._merge()
            case other:
                raise InternalError(f"{other} is no command on rows")
        # What was cached of the table is read anew.
        session = self._door.spark._jsparkSession
        session.sharedState().cacheManager().recacheByPlan(session, self._relation)

    def _opened(self) -> WritableTable:
        found = python_object(self._door, self._relation.table())
        if not isinstance(found, WritableTable):
            raise InvalidRequestError(
                f"{self._relation.table().name()} is a version that does not change",
                action="Name the table itself, or a branch of it.",
            )
        return found

    def _delete(self) -> None:
        condition = self._plan.condition()
        sql = self._table.condition_sql(translated(self._door, condition))
        if sql is not None:
            engine = SparkEngine(self._door.spark)
            newest = self._table.newest()
            delete(newest, sql, engine=engine, retries=PATIENCE, commits_nothing=False)
            return
        self._change(condition, Remove())

    def _update(self) -> None:
        condition = self._plan.condition()
        values = self._values(self._plan.assignments(), inserts=False)
        clause = SetColumns(values=values)
        self._change(condition.get() if condition.isDefined() else None, clause)

    def _change(self, condition: Any, clause: Clause) -> None:
        holds = None if condition is None else column(self._door, condition)
        change_rows(
            self._door.spark,
            self._table.newest(),
            holds,
            clause,
            target_name=_TARGET,
            binding=Binding(door=self._door, target=self._attributes),
        )

    def _merge(self) -> None:
        plan = self._plan
        source = items(plan.sourceTable().output())
        named = [column(self._door, a.withName(f"c{i}")) for i, a in enumerate(source)]
        condition = column(self._door, plan.mergeCondition())
        merge = FrameMerge(
            source=frame(self._door, plan.sourceTable()).select(*named),
            condition=condition,
            clauses=Clauses(
                matched=self._actions(plan.matchedActions()),
                not_matched=tuple(
                    action
                    for action in self._actions(plan.notMatchedActions())
                    if isinstance(action, SetColumns)
                ),
                not_matched_by_source=self._actions(plan.notMatchedBySourceActions()),
            ),
            target_name=_TARGET,
            source_name=_SOURCE,
            binding=Binding(
                door=self._door,
                target=self._attributes,
                source=tuple(source),
                condition=condition,
            ),
        )
        merge_frame(self._table.newest(), merge)

    def _actions(self, actions: Any) -> tuple[Clause, ...]:
        return tuple(self._action(action) for action in items(actions))

    def _action(self, action: Any) -> Clause:
        given = action.condition()
        condition = column(self._door, given.get()) if given.isDefined() else None
        if kind(action) == "DeleteAction":
            return Remove(condition=condition)
        inserts = kind(action) == "InsertAction"
        values = self._values(action.assignments(), inserts=inserts)
        return SetColumns(values=values, condition=condition)

    def _values(self, assignments: Any, *, inserts: bool) -> dict[str, Any]:
        """Return the columns that get values; one that stays as it is may be dropped meanwhile."""
        found = aligned(self._door, self._relation.output(), assignments, inserts=inserts)
        changed = [a for a in found if not a.key().semanticEquals(a.value())]
        return {a.key().name(): column(self._door, a.value()) for a in changed}


def run_row_command(door: Door, plan: Any) -> None:
    """Run a command that Spark has planned."""
    RowCommand(door, plan).run()
