"""Writes in Spark's planner: executors write files, the driver process commits."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pyspark.sql import types as t

from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.expr.condition import Condition
from lancelake.expr.predicate import joined
from lancelake.format.fragment import Fragment
from lancelake.spark.jobs.engine import SparkEngine
from lancelake.spark.jvm.expressions import JavaExpressions
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.jvm.proxy import Proxy, implements
from lancelake.spark.jvm.python_read import python_schema
from lancelake.spark.jvm.python_write import fragments_of, writer_factory
from lancelake.spark.options.table_options import (
    WRITE_OPTIONS,
    TableOptions,
    ensure_known,
    given_to,
)
from lancelake.spark.planning.replaced_rows import RowsByExpression
from lancelake.spark.writing.task_writer import WriteBatches
from lancelake.spark.writing.write_plan import SaveMode, ensure_columns, plan_write
from lancelake.table.planned_write import RowsByFilter, RowsToReplace, WritePlan, commit_write

Begin = Callable[..., WritePlan | None]
"""Plans a write when it starts."""

Plan = Callable[[], WritePlan | None]
Commit = Callable[[WritePlan, tuple[Fragment, ...]], None]
"""Commits the fragments that tasks wrote for a plan."""


@implements("write.SupportsOverwriteV2", "write.SupportsDynamicOverwrite")
class LanceWriteBuilder(Proxy):
    """Selects append, overwrite or overwrite by filter."""

    def __init__(
        self,
        gateway: Gateway,
        target: TableOptions,
        info: Any,
        expressions: JavaExpressions | None,
        *,
        begin: Begin = plan_write,
        commit: Commit | None = None,
        mode: SaveMode = SaveMode.APPEND,
    ) -> None:
        super().__init__(gateway)
        self._options = _with_given(target, dict(info.options().asCaseSensitiveMap()))
        self._schema = python_schema(info.schema())
        self._expressions = expressions
        self._mode = mode
        self._replaces: RowsToReplace | None = None
        self._steps = (begin, commit or self._into_table)

    def truncate(self) -> Any:
        self._mode = SaveMode.OVERWRITE
        return self

    def overwriteDynamicPartitions(self) -> Any:
        # A table without partitions is one partition.
        return self.truncate()

    def canOverwrite(self, predicates: Any) -> bool:  # noqa: ARG002
        # A condition that cannot be translated is evaluated by Spark.
        return True

    def overwrite(self, predicates: Any) -> Any:
        if self._options.get("replaceWhere") is not None:
            problem = "option replaceWhere cannot be combined with an overwrite by condition"
            raise InvalidRequestError(problem, table=self._options.location.uri)
        found = [self._condition(predicate) for predicate in predicates]
        conditions = [condition for condition in found if condition is not None]
        if len(conditions) < len(found):
            self._replaces = RowsByExpression.of(self.gateway)
        else:
            engine = SparkEngine(self.gateway.spark)
            self._replaces = RowsByFilter(condition=joined(conditions), engine=engine)
        self._mode = SaveMode.OVERWRITE
        return self

    def build(self) -> Any:
        options, schema, mode = self._options, self._schema, self._mode
        ensure_columns(schema, options)
        begin, commit = self._steps
        plan = functools.partial(
            begin, options, schema, mode, spark=self.gateway.spark, replaces=self._replaces
        )
        text = f"lance {mode.value} to {options.location.uri}"
        return _Write(self.gateway, schema, plan, commit, text)

    def buildForBatch(self) -> Any:
        return self.build().toBatch()

    def buildForStreaming(self) -> Any:
        raise UnsupportedError(
            "this catalog does not support streaming writes",
            action='Use writeStream.format("lance") with the table\'s path.',
        )

    def _into_table(self, plan: WritePlan, fragments: tuple[Fragment, ...]) -> None:
        commit_write(plan, fragments)

    def _condition(self, predicate: Any) -> Condition | None:
        return None if self._expressions is None else self._expressions.condition(predicate)


@implements("write.Write")
class _Write(Proxy):
    def __init__(
        self, gateway: Gateway, schema: t.StructType, plan: Plan, commit: Commit, text: str
    ) -> None:
        super().__init__(gateway)
        self._parts = (schema, plan, commit)
        self._text = text

    def identity(self) -> str:
        return self._text

    def description(self) -> str:
        return self._text

    def toBatch(self) -> Any:
        return _BatchWrite(self.gateway, *self._parts)

    def toStreaming(self) -> Any:
        raise UnsupportedError("this write does not support streaming")

    def supportedCustomMetrics(self) -> Any:
        return self.gateway.array(self.gateway.connector("metric.CustomMetric"), [])

    def reportDriverMetrics(self) -> Any:
        return self.gateway.array(self.gateway.connector("metric.CustomTaskMetric"), [])


@implements("write.BatchWrite")
class _BatchWrite(Proxy):
    def __init__(self, gateway: Gateway, schema: t.StructType, plan: Plan, commit: Commit) -> None:
        super().__init__(gateway)
        self._schema, self._begin, self._publish = schema, plan, commit
        self._plan: WritePlan | None = None

    def createBatchWriterFactory(self, info: Any) -> Any:  # noqa: ARG002
        # A write starts here, since a plan that is only displayed must change nothing.
        self._plan = self._begin()
        if self._plan is None:
            raise UnsupportedError("there is nothing to write")
        return writer_factory(self.gateway, WriteBatches(self._plan.task), self._schema)

    def useCommitCoordinator(self) -> bool:
        # Every attempt writes its own files and Spark passes one message per task. With the
        # coordinator a write fails if an executor is lost between its permission and its reply.
        return False

    def onDataWriterCommit(self, message: Any) -> None:
        """Do nothing: nothing is recorded for single tasks."""

    def commit(self, messages: Any, *summary: Any) -> None:  # noqa: ARG002
        if self._plan is not None:
            self._publish(self._plan, fragments_of(messages))

    def abort(self, messages: Any) -> None:
        """Do nothing: a commit may have succeeded, and cleanup removes orphan files."""


def _with_given(target: TableOptions, given: dict[str, str]) -> TableOptions:
    rest = given_to(target.location, given)
    ensure_known(rest, WRITE_OPTIONS, target.location.uri)
    return replace(target, rest={**rest, **target.rest})
