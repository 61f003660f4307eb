"""Plans and expressions of Catalyst."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import Column, DataFrame

from lancelake.core.values.conditions import MAX_DEPTH
from lancelake.errors import InternalError
from lancelake.spark.jvm.gateway import Gateway, driver_object

_CATALYST = "org.apache.spark.sql.catalyst"
_OF_THE_QUERY = ("Current", "LocalTimestamp", "Now")
_UTILS = "org.apache.spark.sql.classic.ExpressionUtils"


def items(sequence: Any) -> list[Any]:
    """Return the items of a Scala sequence."""
    return [sequence.apply(position) for position in range(sequence.size())]


def seq(gateway: Gateway, values: Iterable[Any]) -> Any:
    """Return a Scala sequence."""
    result = gateway.cls("java.util.ArrayList")()
    for item in values:
        result.add(item)
    return gateway.cls("scala.jdk.javaapi.CollectionConverters").asScala(result).toSeq()


def kind(node: Any) -> str:
    """Return the class name of a plan or expression, without its package."""
    return str(node.getClass().getSimpleName())


def column(gateway: Gateway, expression: Any) -> Column:
    """Return an expression as a column."""
    return Column(gateway.cls(_UTILS).column(expression))


def expression(gateway: Gateway, of: Column) -> Any:
    """Return the expression of a column."""
    return gateway.spark._jsparkSession.expression(of._jc)


def known_as(gateway: Gateway, of: Column, attribute: Any, name: str) -> Column:
    """Return a column with the identity of an attribute, as resolved expressions need it."""
    empty = seq(gateway, [])
    make = gateway.cls(f"{_CATALYST}.expressions.Alias")
    child = expression(gateway, of)
    return column(gateway, make(child, name, attribute.exprId(), empty, gateway.none(), empty))


def frame(gateway: Gateway, plan: Any) -> DataFrame:
    """Return the rows of an analyzed plan."""
    rows = gateway.cls("org.apache.spark.sql.classic.Dataset").ofRows(
        gateway.spark._jsparkSession, plan
    )
    return DataFrame(rows, gateway.spark)


def ids_named(expression: Any) -> set[int]:
    """Return the ids of the attributes that an expression refers to."""
    attributes = items(expression.references().toSeq())
    return {attribute_id(attribute) for attribute in attributes}


def conjuncts(condition: Any) -> Iterator[Any]:
    """Yield the conjuncts of a condition."""
    if kind(condition) == "And":
        for child in items(condition.children()):
            yield from conjuncts(child)
    else:
        yield condition


def analyzed(gateway: Gateway, command: Any) -> Any:
    """Return the running command as it was before the optimizer changed its target."""
    return running_command(gateway, kind(command))


def running_command(gateway: Gateway, name: str) -> Any:
    """Return the running command, which must be of this kind, as it was analyzed."""
    running = gateway.spark.sparkContext.getLocalProperty("spark.sql.execution.id")
    executions = gateway.cls("org.apache.spark.sql.execution.SQLExecution")
    execution = None if running is None else executions.getQueryExecution(int(running))
    plan = None if execution is None else execution.analyzed()
    if plan is None or kind(plan) != name:
        raise InternalError(f"the analyzed plan of {name} was not found")
    return plan


@dataclass(frozen=True, slots=True, kw_only=True)
class BareRelation:
    """The target table of a command: a relation below aliases and CHAR padding only."""

    relation: Any
    shown: Any
    """The plan with the columns that expressions refer to: the relation, or its padding."""


def bare_relation(plan: Any) -> BareRelation | None:
    """Return the table below aliases; None for a view or another query."""
    while kind(plan) == "SubqueryAlias":
        plan = plan.child()
    relation = plan.child() if kind(plan) == "Project" else plan
    if kind(relation) != "DataSourceV2Relation":
        return None
    if relation is not plan and not _only_pads(plan, relation):
        return None
    return BareRelation(relation=relation, shown=plan)


def relation_name(plan: Any) -> str:
    """Return the name under which a query uses a plan."""
    return str(plan.identifier().name()) if kind(plan) == "SubqueryAlias" else "the target"


def _only_pads(project: Any, relation: Any) -> bool:
    """Whether a projection contains every column of a relation, each computed from itself alone."""
    shown, stored = items(project.projectList()), items(relation.output())
    return len(shown) == len(stored) and all(
        column.name() == attribute.name() and ids_named(column) == {attribute_id(attribute)}
        for column, attribute in zip(shown, stored, strict=True)
    )


def attribute_id(attribute: Any) -> int:
    """Return the id by which expressions refer to a column."""
    return int(attribute.exprId().id())


def keeps_values_apart(gateway: Gateway, cast: Any) -> bool:
    """Whether a cast maps different values to different values."""
    casts = gateway.cls(f"{_CATALYST}.expressions.Cast$")
    return bool(getattr(casts, "MODULE$").canUpCast(cast.child().dataType(), cast.dataType()))


def is_repeatable(expression: Any) -> bool:
    """Whether an expression has the same value in another query: it reads no clock and no table."""
    name = kind(expression)
    if (
        name.startswith(_OF_THE_QUERY)
        or name.endswith("Subquery")
        or not expression.deterministic()
    ):
        return False
    return all(is_repeatable(child) for child in items(expression.children()))


def python_object(gateway: Gateway, proxy: Any) -> Any:
    """Return the Python object behind a Java proxy."""
    handler = gateway.member("java.lang.reflect.Proxy", "getInvocationHandler")(proxy)
    return gateway.gateway.gateway_property.pool[handler.id()]


def aligned(gateway: Gateway, attributes: Any, assignments: Any, *, inserts: bool) -> Any:
    """Return one assignment for each column, with struct fields merged into their columns."""
    name = f"{_CATALYST}.analysis.AssignmentUtils"
    method = "alignInsertAssignments" if inserts else "alignUpdateAssignments"
    every = gateway.member("java.lang.Class", "forName")(name).getMethods()
    count = next(int(m.getParameterCount()) for m in every if m.getName() == method)
    flags = [False] * (count - 2)
    return getattr(gateway.cls(name), method)(attributes, assignments, *flags)


def translate(gateway: Gateway, condition: Any) -> Any:
    """Return a condition as a data source filter; None if it cannot be translated."""
    strategy = gateway.cls("org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy$")
    try:
        translation = getattr(strategy, "MODULE$").translateFilterV2(condition)
    except Py4JJavaError as error:
        # Spark asserts that AND, OR and NOT below another expression have no null and no cast.
        if error.java_exception.getClass().getName() != "java.lang.AssertionError":
            raise
        return None
    return translation.get() if translation.isDefined() else None


_ANY_NUMBER = (1 << 31) - 1


def remember_answers(gateway: Gateway, proxy: Any, facts: Mapping[str, object] | None) -> Any:
    """Return a Python object for Spark whose constant answers Java keeps.

    Java has the facts from the start, in one message.
    """
    memory = _memory(gateway)
    return memory.of(proxy) if facts is None else memory.of(proxy, bytearray(pickle.dumps(facts)))


def share_metrics(gateway: Gateway, metrics: Any) -> None:
    """Let all scans report these metrics."""
    _memory(gateway).shareMetrics(metrics)


def _memory(gateway: Gateway) -> Any:
    return gateway.once_per_jvm("memory of proxies", lambda: driver_object(gateway, "Remembered"))


def planned(
    gateway: Gateway, payloads: Sequence[bytes], factory: Any, values: Mapping[str, int]
) -> Any:
    """Return the partitions of a scan, the factory of their readers, and values of its metrics."""
    lengths = ",".join(str(len(payload)) for payload in payloads)
    metrics = ",".join(f"{name}={value}" for name, value in values.items())
    return _calls(gateway).planned(bytearray(b"".join(payloads)), lengths, factory, metrics)


def catalog_settings(gateway: Gateway) -> dict[str, str]:
    """Return the settings of the catalogs of a session."""
    pickled = _calls(gateway).catalogSettings(gateway.spark._jsparkSession)
    settings: dict[str, str] = pickle.loads(pickled)  # from our own JVM
    return settings


def partition_bytes(gateway: Gateway) -> int:
    """Return the setting `spark.sql.files.maxPartitionBytes` of the session."""
    return int(_calls(gateway).partitionBytes(gateway.spark._jsparkSession))


def partitions(gateway: Gateway, payloads: Sequence[bytes]) -> Any:
    """Return Spark's partitions, each with the bytes for the reader on the executor."""
    lengths = ",".join(str(len(payload)) for payload in payloads)
    return _calls(gateway).partitions(bytearray(b"".join(payloads)), lengths)


def select_predicates(gateway: Gateway, predicates: Any, positions: Sequence[int]) -> Any:
    """Return the predicates of an array at some positions, as an array."""
    return _calls(gateway).chosen(predicates, ",".join(map(str, positions)))


def describe(gateway: Gateway, predicates: Any, most: int | None = None) -> Any:
    """Return an array of predicates as tuples; those with more than `most` children as unknown.

    So are those that are nested deeper than conditions in text may be.
    """
    limit = _ANY_NUMBER if most is None else most
    pickled = _calls(gateway).described(predicates, limit, MAX_DEPTH)
    return pickle.loads(pickled)  # from our own JVM


def describe_one(gateway: Gateway, predicate: Any) -> Any:
    """Return a predicate as tuples, with the same limit of its depth."""
    pickled = _calls(gateway).describedAlone(predicate, MAX_DEPTH)
    return pickle.loads(pickled)  # from our own JVM


def _calls(gateway: Gateway) -> Any:
    return gateway.once_per_jvm("calls of the planner", lambda: driver_object(gateway, "PlanCalls"))
