"""Tables that Spark writes to."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t

from lancelake.core.table import Table
from lancelake.core.values.conditions import Condition, Predicate, joined
from lancelake.core.values.metadata import Fragment, Schema, Snapshot, quoted_name
from lancelake.core.values.reads import MetaColumn
from lancelake.core.values.reports import cluster_paths
from lancelake.core.values.writes import (
    RowsByFilter,
    RowsByFragment,
    RowsToReplace,
    WritePlan,
)
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.spark.connector.stream_table import stream_of
from lancelake.spark.jobs.engine import SparkEngine
from lancelake.spark.jobs.target_frame import others, rows_of, staged_frame, target_frame
from lancelake.spark.jobs.write_plan import (
    SaveMode,
    WriteBatches,
    commit_plan,
    ensure_columns,
    plan_write,
)
from lancelake.spark.jvm.catalyst import (
    attribute_id,
    column,
    ids_named,
    items,
    known_as,
    running_command,
    seq,
)
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.jvm.proxy import Proxy, implements
from lancelake.spark.jvm.python_tasks import fragments_of, python_schema, writer_factory
from lancelake.spark.jvm.spark_conditions import JavaExpressions
from lancelake.spark.reading.version_table import VersionTable, dict_of
from lancelake.spark.sql.alter_table import PrimaryKey, primary_key
from lancelake.spark.streaming.sink import SINK_OPTIONS, StreamSink, WriteStreamed
from lancelake.spark.tasks.read_plan import column_types
from lancelake.spark.values.options import (
    WRITE_OPTIONS,
    TableOptions,
    properties_of,
)

_CLUSTER_BY = "cluster_by"


def primary_key_of(constraints: Iterable[Any]) -> PrimaryKey | None:
    """Return the primary key among constraints; other constraints are refused."""
    key: PrimaryKey | None = None
    for constraint in constraints:
        key = constraint_key(constraint)
    return key


def constraint_key(constraint: Any) -> PrimaryKey:
    """Convert a primary key; another constraint is refused."""
    kind = str(constraint.getClass().getSimpleName())
    if kind != "PrimaryKey":
        raise UnsupportedError(
            f"constraint {constraint.name()} is not supported: a Lance table has no place for "
            f"{constraint.toDDL()}, and rows written outside of SQL would not be checked",
            action="Only PRIMARY KEY constraints are supported.",
        )
    columns = tuple(".".join(reference.fieldNames()) for reference in constraint.columns())
    return PrimaryKey(name=str(constraint.name()), columns=columns)


def java_constraints(gateway: Gateway, schema: Schema) -> Any:
    """Return the constraints of a table as Java objects."""
    kind = gateway.connector("catalog.constraints.Constraint")
    key = primary_key(schema)
    if key is None:
        return gateway.once("no constraints", lambda: gateway.array(kind, []))
    references = _references(gateway, [[name] for name in key.columns])
    builder = kind.primaryKey(
        key.name, gateway.array(gateway.connector("expressions.NamedReference"), references)
    )
    return gateway.array(kind, [builder.enforced(False).build()])


def clustering_of(transforms: Iterable[Any]) -> list[list[str]]:
    """Return the clustering columns among transforms; partitioning is refused."""
    columns: list[list[str]] = []
    for transform in transforms:
        if transform.name() != _CLUSTER_BY:
            problem = "Lance tables do not support partitioning by columns"
            raise UnsupportedError(problem, action="Omit PARTITIONED BY, or use CLUSTER BY.")
        columns += [list(reference.fieldNames()) for reference in transform.references()]
    return columns


def java_clustering(gateway: Gateway, columns: Sequence[Sequence[str]]) -> Any:
    """Return clustering columns as an array of transforms."""
    kind = gateway.connector("expressions.Transform")
    if not columns:
        return gateway.once("no transforms", lambda: gateway.array(kind, []))
    make = gateway.connector("expressions.ClusterByTransform")
    return gateway.array(kind, [make(seq(gateway, _references(gateway, columns)))])


def _references(gateway: Gateway, paths: Iterable[Sequence[str]]) -> list[Any]:
    make = gateway.connector("expressions.FieldReference")
    return [make(seq(gateway, list(path))) for path in paths]


_ADDRESS = MetaColumn.ROW_ADDRESS.value


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsByExpression:
    """Rows to replace, by a resolved expression."""

    gateway: Gateway
    expression: Any
    attributes: dict[str, Any]
    """The columns that the expression refers to, by name."""

    @staticmethod
    def of(gateway: Gateway) -> RowsByExpression:
        """Return the condition of the overwrite that is running."""
        command = running_command(gateway, "OverwriteByExpression")
        condition = command.deleteExpr()
        named = ids_named(condition)
        output = items(command.table().output())
        attributes = {a.name(): a for a in output if attribute_id(a) in named}
        return RowsByExpression(gateway=gateway, expression=condition, attributes=attributes)

    @property
    def text(self) -> str:
        """The condition in SQL."""
        return str(self.expression.sql())

    def ensure_possible(self, schema: Schema) -> None:
        """Do nothing: Spark has resolved the expression."""

    def find(self, at: Snapshot) -> RowsByFragment:
        """Return the rows of a version."""
        rows = target_frame(self.gateway.spark, at, list(self.attributes), [_ADDRESS])
        addressed = rows.select(*self._bind(), f.col(_ADDRESS))
        return rows_of(addressed.where(self._condition), at)

    def has_others(self, written: Snapshot) -> bool:
        """Whether some of the rows that were written do not match the condition."""
        rows = staged_frame(self.gateway.spark, written, list(self.attributes))
        return not others(rows.select(*self._bind()), self._condition).isEmpty()

    @property
    def _condition(self) -> Column:
        return column(self.gateway, self.expression)

    def _bind(self) -> list[Column]:
        """Return the columns with the identities that the expression refers to."""
        return [
            known_as(self.gateway, f.col(quoted_name(name)), attribute, name)
            for name, attribute in self.attributes.items()
        ]


Begin = Callable[..., WritePlan | None]
"""Plans a write when it starts."""

Plan = Callable[[], WritePlan | None]
Commit = Callable[[WritePlan, tuple[Fragment, ...]], object]
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
        self._target, self._given = target, dict_of(info.options())
        self._query, self._schema = str(info.queryId()), python_schema(info.schema())
        self._expressions = expressions
        self._mode = mode
        self._replaces: RowsToReplace | None = None
        self._steps = (begin, commit or commit_plan)

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
        if "replacewhere" in map(str.lower, self._given):
            problem = "option replaceWhere cannot be combined with an overwrite by condition"
            raise InvalidRequestError(problem, table=self._target.location.uri)
        converted = [self._condition(predicate) for predicate in predicates]
        conditions = [condition for condition in converted if condition is not None]
        if len(conditions) < len(converted):
            self._replaces = RowsByExpression.of(self.gateway)
        else:
            engine = SparkEngine(self.gateway.spark)
            self._replaces = RowsByFilter(condition=joined(conditions), engine=engine)
        self._mode = SaveMode.OVERWRITE
        return self

    def build(self) -> Any:
        text = f"lance {self._mode.value} to {self._target.location.uri}"
        return _Write(self.gateway, self._batch_write, self._streaming_write, text)

    def buildForBatch(self) -> Any:
        return self._batch_write()

    def buildForStreaming(self) -> Any:
        return self._streaming_write()

    def _batch_write(self) -> Any:
        options, schema = _add_options(self._target, self._given, WRITE_OPTIONS), self._schema
        ensure_columns(schema, options)
        begin, commit = self._steps
        plan = functools.partial(
            begin, options, schema, self._mode, spark=self.gateway.spark, replaces=self._replaces
        )
        return _BatchWrite(self.gateway, schema, plan, commit)

    def _streaming_write(self) -> Any:
        sink = StreamSink(
            options=_add_options(self._target, self._given, SINK_OPTIONS),
            schema=self._schema,
            mode=self._mode,
            spark=self.gateway.spark,
        )
        return _StreamingWrite(self.gateway, sink, self._query)

    def _condition(self, predicate: Any) -> Condition | None:
        return None if self._expressions is None else self._expressions.condition(predicate)


@implements("write.Write")
class _Write(Proxy):
    def __init__(
        self, gateway: Gateway, batch: Callable[[], Any], stream: Callable[[], Any], text: str
    ) -> None:
        super().__init__(gateway)
        self._batch, self._stream = batch, stream
        self._text = text

    def identity(self) -> str:
        return self._text

    def description(self) -> str:
        return self._text

    def toBatch(self) -> Any:
        return self._batch()

    def toStreaming(self) -> Any:
        return self._stream()


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


@implements("write.streaming.StreamingWrite")
class _StreamingWrite(Proxy):
    """Commits each batch exactly once."""

    def __init__(self, gateway: Gateway, sink: StreamSink, query: str) -> None:
        super().__init__(gateway)
        self._sink, self._query = sink, query

    def identity(self) -> str:
        return f"lance stream into {self._sink.options.location.uri}"

    def createStreamingWriterFactory(self, info: Any) -> Any:  # noqa: ARG002
        work = WriteStreamed(self._sink.plan().task, self._sink.rows)
        return writer_factory(self.gateway, work, self._sink.schema)

    def useCommitCoordinator(self) -> bool:
        # As for batches: every attempt writes its own files.
        return False

    def commit(self, batch: int, messages: Any) -> None:
        self._sink.commit(fragments_of(messages), self._query, batch)

    def abort(self, batch: int, messages: Any) -> None:
        """Do nothing: a commit may have succeeded, and cleanup removes orphan files."""


def _add_options(
    target: TableOptions, given: dict[str, str], allowed: Sequence[str]
) -> TableOptions:
    rest = TableOptions.of(target.location, given, allowed).rest
    return replace(target, rest={**rest, **target.rest})


_CAPABILITIES = (
    "AUTOMATIC_SCHEMA_EVOLUTION",
    "BATCH_READ",
    "BATCH_WRITE",
    "MICRO_BATCH_READ",
    "OVERWRITE_BY_FILTER",
    "OVERWRITE_DYNAMIC",
    "STREAMING_WRITE",
    "TRUNCATE",
)


@implements(
    "catalog.SupportsRead",
    "catalog.SupportsMetadataColumns",
    "catalog.SupportsWrite",
    "catalog.SupportsDeleteV2",
    "lancelake.Streamed",
)
class WritableTable(VersionTable):
    """Reads the version that was newest when it was loaded; writes are applied to the newest."""

    def __init__(
        self, gateway: Gateway, snapshot: Snapshot, name: str, *, is_external: bool = False
    ) -> None:
        super().__init__(gateway, snapshot, name)
        self._is_external = is_external
        branch = snapshot.branch
        rest = {} if branch is None else {"branch": branch}
        self.options = TableOptions(location=snapshot.main_location, rest=rest)

    @property
    def key(self) -> tuple[object, ...]:
        """Identify the version, also if the table was dropped and created again meanwhile."""
        at, manifest = self.snapshot, self.snapshot.manifest
        identity = (manifest.transaction_file, manifest.timestamp_ns, at.version)
        return self.name(), at.location, at.branch, *identity, self._is_external

    def facts(self) -> dict[str, object]:
        kind = {"external": "true"} if self._is_external else {"is_managed_location": "true"}
        facts = super().facts()
        # Java asks for those that are not just empty.
        if cluster_paths(self.snapshot.manifest.config):
            del facts["partitioning"]
        if primary_key(self.snapshot.manifest.schema) is not None:
            del facts["constraints"]
        return {
            **facts,
            "capabilities": list(_CAPABILITIES),
            "properties": {**properties_of(self.snapshot), **kind},
        }

    def constraints(self) -> Any:
        return java_constraints(self.gateway, self.snapshot.manifest.schema)

    def partitioning(self) -> Any:
        return java_clustering(self.gateway, cluster_paths(self.snapshot.manifest.config))

    def newWriteBuilder(self, info: Any) -> Any:
        return LanceWriteBuilder(self.gateway, self.options, info, self._java_expressions())

    def asStream(self, options: Any) -> Any:
        return stream_of(self.gateway, self.options, dict(options), self.name())

    def canDeleteWhere(self, predicates: Any) -> bool:
        return all(condition is not None for condition in self._conditions(predicates))

    def deleteWhere(self, predicates: Any, *options: Any) -> None:  # noqa: ARG002
        conditions = self._conditions(predicates)
        supported = [condition for condition in conditions if condition is not None]
        if len(supported) < len(conditions):
            raise UnsupportedError("this condition is not supported for deleting rows")
        self._delete(joined(supported))

    def truncateTable(self, *options: Any) -> bool:  # noqa: ARG002
        self._delete(None)
        return True

    def newest(self) -> Snapshot:
        """Open the newest version."""
        newest = self.options.open_existing()
        return self.snapshot if newest is None else newest.snapshot

    def condition(self, predicate: Any) -> Predicate | None:
        """Return a Spark predicate as one of ours; None if that might change its meaning."""
        condition = None if predicate is None else self._conditions([predicate])[0]
        return None if condition is None else joined([condition])

    def _delete(self, condition: Predicate | None) -> None:
        engine = SparkEngine(self.gateway.spark)
        Table(self.newest()).delete(condition, engine=engine, commits_nothing=False)

    def _conditions(self, predicates: Any) -> list[Condition | None]:
        expressions = self._java_expressions()
        return [expressions.condition(predicate) for predicate in predicates]

    def _java_expressions(self) -> JavaExpressions:
        return JavaExpressions(self.gateway, column_types(self.snapshot.manifest.schema))
