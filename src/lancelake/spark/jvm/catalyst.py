"""Catalyst plans and expressions used by row commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import Column, DataFrame

from lancelake.errors import InternalError
from lancelake.spark.jvm.gateway import Gateway

_CATALYST = "org.apache.spark.sql.catalyst"
_OF_THE_QUERY = ("Current", "LocalTimestamp", "Now")
_UTILS = "org.apache.spark.sql.classic.ExpressionUtils"


def items(found: Any) -> list[Any]:
    """Return the items of a Scala sequence."""
    return [found.apply(position) for position in range(found.size())]


def seq(gateway: Gateway, found: Iterable[Any]) -> Any:
    """Return a Scala sequence."""
    result = gateway.cls("java.util.ArrayList")()
    for item in found:
        result.add(item)
    return gateway.cls("scala.jdk.javaapi.CollectionConverters").asScala(result).toSeq()


def kind(node: Any) -> str:
    """Return the class name of a plan or expression, without its package."""
    return str(node.getClass().getSimpleName())


def column(gateway: Gateway, expression: Any) -> Column:
    """Return an expression as a column."""
    return Column(gateway.cls(_UTILS).column(expression))


def expression(gateway: Gateway, found: Column) -> Any:
    """Return the expression of a column."""
    return gateway.spark._jsparkSession.expression(found._jc)


def known_as(gateway: Gateway, found: Column, attribute: Any, name: str) -> Column:
    """Return a column with the identity of an attribute, as resolved expressions need it."""
    empty = seq(gateway, [])
    make = gateway.cls(f"{_CATALYST}.expressions.Alias")
    child = expression(gateway, found)
    return column(gateway, make(child, name, attribute.exprId(), empty, gateway.none(), empty))


def frame(gateway: Gateway, plan: Any) -> DataFrame:
    """Return the rows of an analyzed plan."""
    made = gateway.cls("org.apache.spark.sql.classic.Dataset").ofRows(
        gateway.spark._jsparkSession, plan
    )
    return DataFrame(made, gateway.spark)


def ids_named(found: Any) -> set[int]:
    """Return the ids of the attributes that an expression refers to."""
    attributes = items(found.references().toSeq())
    return {attribute_id(attribute) for attribute in attributes}


def conjuncts(found: Any) -> Iterator[Any]:
    """Yield the conjuncts of a condition."""
    if kind(found) == "And":
        for child in items(found.children()):
            yield from conjuncts(child)
    else:
        yield found


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
        made.name() == attribute.name() and ids_named(made) == {attribute_id(attribute)}
        for made, attribute in zip(shown, stored, strict=True)
    )


def attribute_id(attribute: Any) -> int:
    """Return the id by which expressions refer to a column."""
    return int(attribute.exprId().id())


def keeps_values_apart(gateway: Gateway, cast: Any) -> bool:
    """Whether a cast maps different values to different values."""
    casts = gateway.cls(f"{_CATALYST}.expressions.Cast$")
    return bool(getattr(casts, "MODULE$").canUpCast(cast.child().dataType(), cast.dataType()))


def is_repeatable(found: Any) -> bool:
    """Whether an expression has the same value in another query: it reads no clock and no table."""
    name = kind(found)
    if name.startswith(_OF_THE_QUERY) or name.endswith("Subquery") or not found.deterministic():
        return False
    return all(is_repeatable(child) for child in items(found.children()))


def python_object(gateway: Gateway, proxy: Any) -> Any:
    """Return the Python object behind a Java proxy."""
    handler = gateway.member("java.lang.reflect.Proxy", "getInvocationHandler")(proxy)
    field = handler.getClass().getDeclaredField("id")
    field.setAccessible(True)
    return gateway.gateway.gateway_property.pool[field.get(handler)]


def aligned(gateway: Gateway, attributes: Any, assignments: Any, *, inserts: bool) -> Any:
    """Return one assignment for each column, with struct fields merged into their columns."""
    name = f"{_CATALYST}.analysis.AssignmentUtils"
    method = "alignInsertAssignments" if inserts else "alignUpdateAssignments"
    every = gateway.member("java.lang.Class", "forName")(name).getMethods()
    count = next(int(m.getParameterCount()) for m in every if m.getName() == method)
    flags = [False] * (count - 2)
    return getattr(gateway.cls(name), method)(attributes, assignments, *flags)


def translated(gateway: Gateway, condition: Any) -> Any:
    """Return a condition as a data source filter; None if it cannot be translated."""
    strategy = gateway.cls("org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy$")
    try:
        found = getattr(strategy, "MODULE$").translateFilterV2(condition)
    except Py4JJavaError as error:
        # Spark asserts that AND, OR and NOT below another expression have no null and no cast.
        if error.java_exception.getClass().getName() != "java.lang.AssertionError":
            raise
        return None
    return found.get() if found.isDefined() else None
