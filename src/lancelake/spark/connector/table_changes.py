"""Changes of tables and procedures that the catalog is asked for."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.types import _parse_datatype_json_string

from lancelake.core.values.metadata import Location, join_path
from lancelake.core.values.reports import CLUSTER_BY, cluster_text
from lancelake.core.values.writes import ColumnChange
from lancelake.errors import (
    InternalError,
    InvalidRequestError,
    NotFoundError,
    UnsupportedError,
    suggestion,
)
from lancelake.spark.connector.staged_table import StagedTable, TableDefinition
from lancelake.spark.connector.writable_table import WritableTable, constraint_key
from lancelake.spark.jobs.engine import SparkEngine
from lancelake.spark.jobs.write_plan import SaveMode
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.jvm.proxy import Proxy, ScanProxy, as_raised, implements
from lancelake.spark.jvm.python_tasks import java_schema
from lancelake.spark.sql.alter_table import (
    AddColumn,
    Change,
    Comment,
    DropColumn,
    DropConstraint,
    MoveColumn,
    SetDefault,
    SetProperty,
    alter_table,
)
from lancelake.spark.sql.procedures import (
    Parameter,
    Procedure,
    ResultRow,
    Results,
    SparkTable,
    procedure_named,
    procedure_names,
    procedures_from,
)
from lancelake.spark.sql.table_names import table_named
from lancelake.spark.sql.warehouse import Directory
from lancelake.spark.values.options import TableOptions, ensure_changeable
from lancelake.spark.values.spark_types import arrow_schema, arrow_type, with_default

_ROW = "org.apache.spark.sql.catalyst.expressions.GenericInternalRow"
_TEXT = "org.apache.spark.unsafe.types.UTF8String"


@procedures_from
def _load_procedures() -> None:
    from lancelake.spark.sql import (  # noqa: F401, PLC0415
        index_methods,
        maintenance_methods,
        ref_methods,
        search_methods,
        wal_methods,
    )


class _Described(Proxy):
    """Name and description of a procedure."""

    def __init__(
        self,
        gateway: Gateway,
        procedure: Procedure[...],
        table_named: Callable[[str], TableOptions],
    ) -> None:
        super().__init__(gateway)
        self._procedure, self._table_named = procedure, table_named

    def identity(self) -> str:
        return f"lance procedure {self._procedure.name}"

    def name(self) -> str:
        return self._procedure.name

    def description(self) -> str:
        return f"{self._procedure.name}: {self._procedure.text}"


@implements("catalog.procedures.UnboundProcedure")
class LanceProcedure(_Described):
    """A procedure before its arguments are bound.

    It is not bound itself: Spark would convert the types of arguments that it has not yet matched
    with the parameters.
    """

    def bind(self, types: Any) -> Any:  # noqa: ARG002
        return _BoundProcedure(self.gateway, self._procedure, self._table_named)


@implements("catalog.procedures.BoundProcedure")
class _BoundProcedure(_Described):
    """Runs on the driver, and may start jobs."""

    def identity(self) -> str:
        # A plan with a procedure of the same identity would count as unchanged by the binding.
        return f"bound {super().identity()}"

    def isDeterministic(self) -> bool:
        return False

    def parameters(self) -> Any:
        kind = self.gateway.connector("catalog.procedures.ProcedureParameter")
        parameters = [self._parameter(kind, p) for p in self._procedure.parameters]
        return self.gateway.array(kind, parameters)

    def call(self, row: Any) -> Any:
        given: dict[str, Any] = {}
        for position, parameter in enumerate(self._procedure.parameters):
            given[parameter.name] = _value(row, position, parameter)
            if given[parameter.name] is None and parameter.default is None:
                raise InvalidRequestError(f"argument {parameter.name} must not be null")
        table = SparkTable(self.gateway.spark, self._table_named(given.pop("table")))
        answer = self._procedure.run(table, **given)
        scans = self.gateway.cls("java.util.ArrayList")()
        scans.add(self._scan(answer))
        return scans.iterator()

    def _scan(self, answer: Results) -> Any:
        if isinstance(answer, DataFrame):
            return _FrameAnswer(self.gateway, answer)
        if self._procedure.answer is None:
            raise InternalError(f"procedure {self._procedure.name} has no schema")
        return _Answer(self.gateway, self._procedure.answer, answer)

    def _parameter(self, kind: Any, parameter: Parameter) -> Any:
        schema = t.StructType([t.StructField("x", parameter.dtype)])
        dtype = java_schema(self.gateway, schema).apply("x").dataType()
        builder = getattr(kind, "in")(parameter.name, dtype)
        if parameter.default is not None:
            builder = builder.defaultValue(parameter.default)
        return builder.build()


@implements("read.LocalScan")
class _Answer(ScanProxy):
    def __init__(
        self, gateway: Gateway, schema: t.StructType, answer: ResultRow | Sequence[ResultRow]
    ) -> None:
        super().__init__(gateway)
        self._schema, self._answer = schema, answer

    def readSchema(self) -> Any:
        return java_schema(self.gateway, self._schema)

    def rows(self) -> Any:
        answer = self._answer
        every = [answer] if isinstance(answer, Mapping) else answer
        kind = self.gateway.cls("org.apache.spark.sql.catalyst.InternalRow")
        return self.gateway.array(kind, [self._row(one) for one in every])

    def _row(self, answer: ResultRow) -> Any:
        row = self.gateway.cls(_ROW)(len(self._schema.fields))
        for position, field in enumerate(self._schema.fields):
            value = answer[field.name]
            if value is None:
                row.setNullAt(position)
            elif isinstance(value, str):
                row.update(position, self.gateway.cls(_TEXT).fromString(value))
            elif isinstance(value, bool):
                row.setBoolean(position, value)
            else:
                row.setLong(position, value)
        return row


@implements("read.LocalScan")
class _FrameAnswer(ScanProxy):
    """The rows of a frame, which the driver holds."""

    def __init__(self, gateway: Gateway, frame: DataFrame) -> None:
        super().__init__(gateway)
        self._frame = frame

    def readSchema(self) -> Any:
        return self._frame._jdf.schema()

    def rows(self) -> Any:
        return self._frame._jdf.queryExecution().executedPlan().executeCollect()


def _value(row: Any, position: int, parameter: Parameter) -> Any:
    if row.isNullAt(position):
        return None
    match parameter.dtype:
        case t.BooleanType():
            return row.getBoolean(position)
        case t.LongType():
            return row.getLong(position)
        case t.DoubleType():
            return row.getDouble(position)
        case t.ArrayType(elementType=t.DoubleType()):
            return _numbers(row.getArray(position), parameter)
        case _:
            return row.getUTF8String(position).toString()


def _numbers(array: Any, parameter: Parameter) -> list[float]:
    if any(array.isNullAt(place) for place in range(array.numElements())):
        raise InvalidRequestError(f"argument {parameter.name} must not contain nulls")
    return list(array.toDoubleArray())


def changes_of(change: Any, spark: SparkSession) -> list[Change]:
    """Convert one change; adding a column at a position is two changes.

    The session evaluates default values.
    """
    kind = str(change.getClass().getSimpleName())
    if kind == "AddColumn":
        return _add_column(change, tuple(change.fieldNames()), spark)
    if kind.endswith("Column") or kind.startswith("UpdateColumn"):
        return _of_column(change, kind)
    match kind:
        case "SetProperty" | "RemoveProperty":
            value = change.value() if kind == "SetProperty" else None
            ensure_changeable(change.property())
            return [SetProperty(key=change.property(), value=value)]
        case "AddConstraint":
            return [constraint_key(change.constraint())]
        case "DropConstraint":
            return [DropConstraint(name=change.name(), may_be_missing=bool(change.ifExists()))]
        case "ClusterBy":
            columns = [list(reference.fieldNames()) for reference in change.clusteringColumns()]
            return [SetProperty(key=CLUSTER_BY, value=cluster_text(columns))]
        case _:
            raise UnsupportedError(f"{kind} is not supported by Lance tables")


def _of_column(change: Any, kind: str) -> list[Change]:
    path = tuple(change.fieldNames())
    text = join_path(path)
    match kind:
        case "UpdateColumnDefaultValue":
            sql = change.newDefaultValue()
            return [SetDefault(path=path, sql=sql or None)]
        case "DeleteColumn":
            return [DropColumn(path=path, may_be_missing=bool(change.ifExists()))]
        case "RenameColumn":
            return [ColumnChange(path=text, name=change.newName())]
        case "UpdateColumnType":
            return [ColumnChange(path=text, data_type=arrow_type(_type(change.newDataType())))]
        case "UpdateColumnNullability":
            return [ColumnChange(path=text, nullable=bool(change.nullable()))]
        case "UpdateColumnComment":
            return [Comment(path=path, text=change.newComment())]
        case "UpdateColumnPosition":
            return [MoveColumn(path=path, after=_after(change.position()))]
        case _:
            raise UnsupportedError(f"{kind} of {text} is not supported by Lance tables")


def namespace_change(change: Any) -> tuple[str, str | None]:
    """Convert a change of a namespace's properties; a removed property has no value."""
    is_set = str(change.getClass().getSimpleName()) == "SetProperty"
    return str(change.property()), str(change.value()) if is_set else None


def _add_column(change: Any, path: tuple[str, ...], spark: SparkSession) -> list[Change]:
    comment, default = change.comment(), change.defaultValue()
    metadata: dict[str, object] = {} if comment is None else {"comment": comment}
    sql = None if default is None else str(default.getSql())
    metadata = with_default(metadata, sql)
    nullable = bool(change.isNullable())
    field = t.StructField(path[-1], _type(change.dataType()), nullable, metadata or None)
    row = None if sql is None else _evaluate(spark, field, sql)
    added: list[Change] = [AddColumn(path=path, field=field, filled_with=row)]
    if change.position() is not None:
        added.append(MoveColumn(path=path, after=_after(change.position())))
    return added


def _evaluate(spark: SparkSession, field: t.StructField, sql: str) -> pa.RecordBatch:
    """Return a row with the value of a default."""
    value = f.expr(sql).cast(field.dataType).alias(field.name)
    nullable = t.StructField(field.name, field.dataType, True, field.metadata)
    schema = arrow_schema(t.StructType([nullable]))
    row = spark.range(1).select(value).toArrow().combine_chunks()
    column = row.column(0).combine_chunks().cast(schema.field(0).type)
    return pa.RecordBatch.from_arrays([column], schema=schema)


def _type(dtype: Any) -> t.DataType:
    return _parse_datatype_json_string(json.dumps(json.loads(dtype.json())))


def _after(position: Any) -> str | None:
    is_first = position.getClass().getSimpleName() == "First"
    return None if is_first else str(position.column())


_ANALYSIS = "org.apache.spark.sql.catalyst.analysis"


class CatalogProxy(Proxy, ABC):
    """Default implementations of catalog methods."""

    def initialize(self, name: str, options: Any) -> None:
        """Do nothing: the catalog is fully initialised."""

    def defaultNamespace(self) -> Any:
        return self.gateway.strings([])

    def capabilities(self) -> Any:
        return self.gateway.set([])

    def useNullableQuerySchema(self) -> bool:
        return True

    def invalidateTable(self, ident: Any) -> None:
        """Do nothing: tables are not cached, every load opens the newest version."""

    def listTableSummaries(self, namespace: Any) -> Any:
        make = self.gateway.connector("catalog.TableSummary")
        summaries = [make.of(ident, "MANAGED") for ident in self.listTables(namespace)]
        return self.gateway.array(make, summaries)

    @abstractmethod
    def listTables(self, namespace: Any) -> Any: ...

    def purgeTable(self, ident: Any) -> bool:
        return self.dropTable(ident)

    @abstractmethod
    def dropTable(self, ident: Any) -> bool: ...

    def no_such_table(self, ident: Any) -> Py4JJavaError:
        """Return the exception for a table that does not exist."""
        return as_raised(self.gateway.cls(f"{_ANALYSIS}.NoSuchTableException")(ident))

    def table_exists(self, ident: Any) -> Py4JJavaError:
        """Return the exception for a table that already exists."""
        return as_raised(self.gateway.cls(f"{_ANALYSIS}.TableAlreadyExistsException")(ident))

    def no_such_namespace(self, namespace: Any) -> Py4JJavaError:
        """Return the exception for a namespace that does not exist."""
        make = self.gateway.cls(f"{_ANALYSIS}.NoSuchNamespaceException")
        return as_raised(make(self.gateway.strings(list(namespace))))

    def namespace_exists(self, namespace: Any) -> Py4JJavaError:
        """Return the exception for a namespace that already exists."""
        make = self.gateway.cls(f"{_ANALYSIS}.NamespaceAlreadyExistsException")
        return as_raised(make(self.gateway.strings(list(namespace))))


_SYSTEM = "system"


class TableChanges(CatalogProxy):
    """The methods of a catalog that change its tables."""

    directory: Directory

    @abstractmethod
    def name(self) -> str: ...

    @abstractmethod
    def _open_table(self, ident: Any, *context: Any) -> Any: ...

    @abstractmethod
    def location_of(self, ident: Any) -> Location:
        """Return the location of a table."""

    @abstractmethod
    def definition(self, ident: Any, details: tuple[Any, ...]) -> TableDefinition:
        """Parse the definition of a new table."""

    def createTable(self, ident: Any, *details: Any) -> Any:
        definition = self.definition(ident, details)
        self.ensure_free(ident)
        snapshot = definition.create(SaveMode.ERROR)
        return WritableTable(self.gateway, snapshot, self._full(ident))

    def createTableLike(self, ident: Any, info: Any, source: Any) -> Any:  # noqa: ARG002
        return self.createTable(ident, info)

    def stageCreate(self, ident: Any, *details: Any) -> Any:
        definition = self.definition(ident, details)
        self.ensure_free(ident)
        return StagedTable(self.gateway, definition, SaveMode.ERROR, self._full(ident))

    def stageReplace(self, ident: Any, *details: Any) -> Any:
        if not self.directory.has_table(self.location_of(ident)):
            raise self.no_such_table(ident)
        return self.stageCreateOrReplace(ident, *details)

    def stageCreateOrReplace(self, ident: Any, *details: Any) -> Any:
        definition = self.definition(ident, details)
        return StagedTable(self.gateway, definition, SaveMode.OVERWRITE, self._full(ident))

    def supportedCustomMetrics(self) -> Any:
        return self.gateway.array(self.gateway.connector("metric.CustomMetric"), [])

    def alterTable(self, ident: Any, changes: Any) -> Any:
        table = self._open_table(ident)
        if not isinstance(table, WritableTable):
            raise UnsupportedError(f"{self._full(ident)} cannot be altered: it is not a table")
        every = [
            converted for change in changes for converted in changes_of(change, self.gateway.spark)
        ]
        snapshot = alter_table(table.newest(), every, SparkEngine(self.gateway.spark))
        return WritableTable(self.gateway, snapshot, self._full(ident))

    def renameTable(self, old: Any, new: Any) -> None:
        new = self._relative(new)
        source, target = self.location_of(old), self.location_of(new)
        if not self.directory.has_table(source):
            raise self.no_such_table(old)
        self.ensure_free(new)
        before = (tuple(old.namespace()), old.name())
        external = self.directory.external(*before)
        if external is None:
            self.directory.rename_table(source, target)
            return
        self.directory.add_external(tuple(new.namespace()), new.name(), external)
        self.directory.forget_external(*before)

    def _relative(self, ident: Any) -> Any:
        """Return a new name without the catalog's name, which Spark leaves in it."""
        first, *rest = tuple(ident.namespace()) or ("",)
        if first != self.name() or self.directory.has_namespace((first,)):
            return ident
        make = self.gateway.connector("catalog.Identifier")
        return make.of(self.gateway.strings(rest), ident.name())

    def alterNamespace(self, namespace: Any, changes: Any) -> None:
        properties = [namespace_change(change) for change in changes]
        self.directory.alter_namespace(tuple(namespace), dict(properties))

    def listProcedures(self, namespace: Any) -> Any:
        make = self.gateway.connector("catalog.Identifier")
        home = self.gateway.strings([_SYSTEM])
        names = procedure_names() if tuple(namespace) == (_SYSTEM,) else []
        return self.gateway.array(make, [make.of(home, name) for name in names])

    def loadProcedure(self, ident: Any) -> Any:
        procedure = procedure_named(ident.name())
        if tuple(ident.namespace()) != (_SYSTEM,) or procedure is None:
            raise NotFoundError(
                f"procedure {self._full(ident)} does not exist",
                action=suggestion(ident.name(), procedure_names(), "procedures"),
            )
        spark, catalog = self.gateway.spark, self.name()
        return LanceProcedure(
            self.gateway, procedure, lambda name: table_named(spark, name, catalog)
        )

    def ensure_free(self, ident: Any) -> None:
        """Raise an exception if the name of a new table is taken."""
        if self.directory.has_table(self.location_of(ident)):
            raise self.table_exists(ident)

    def _full(self, ident: Any) -> str:
        return f"{self.name()}.{ident.toString()}"
