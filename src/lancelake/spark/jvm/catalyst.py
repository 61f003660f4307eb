"""Spark's plans and expressions, as far as row commands need them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql import Column, DataFrame

from lancelake.spark.jvm.door import Door

_CATALYST = "org.apache.spark.sql.catalyst"
_UTILS = "org.apache.spark.sql.classic.ExpressionUtils"


def items(found: Any) -> list[Any]:
    """Return the items of a Scala sequence."""
    return [found.apply(position) for position in range(found.size())]


def seq(door: Door, found: Iterable[Any]) -> Any:
    """Return a Scala sequence."""
    result = door.cls("java.util.ArrayList")()
    for item in found:
        result.add(item)
    return door.cls("scala.jdk.javaapi.CollectionConverters").asScala(result).toSeq()


def kind(node: Any) -> str:
    """Return the class of a plan or expression, without its package."""
    return str(node.getClass().getSimpleName())


def column(door: Door, expression: Any) -> Column:
    """Return an expression as a column."""
    return Column(door.cls(_UTILS).column(expression))


def expression(door: Door, found: Column) -> Any:
    """Return the expression of a column."""
    return door.cls(_UTILS).expression(found._jc)


def known_as(door: Door, found: Column, attribute: Any, name: str) -> Column:
    """Return a column that resolved expressions take for an attribute."""
    empty = seq(door, [])
    make = door.cls(f"{_CATALYST}.expressions.Alias")
    child = expression(door, found)
    return column(door, make(child, name, attribute.exprId(), empty, door.none(), empty))


def frame(door: Door, plan: Any) -> DataFrame:
    """Return the rows of an analyzed plan."""
    made = door.cls("org.apache.spark.sql.classic.Dataset").ofRows(door.spark._jsparkSession, plan)
    return DataFrame(made, door.spark)


def ids_named(found: Any) -> set[int]:
    """Return the ids of the attributes that an expression refers to."""
    attributes = items(found.references().toSeq())
    return {int(attribute.exprId().id()) for attribute in attributes}


def conjuncts(found: Any) -> Iterator[Any]:
    """Yield the parts of a condition that must all hold."""
    if kind(found) == "And":
        for child in items(found.children()):
            yield from conjuncts(child)
    else:
        yield found


def analyzed(door: Door, command: Any) -> Any:
    """Return a command as it was before the optimizer saw it, or itself when that is not known."""
    running = door.spark.sparkContext.getLocalProperty("spark.sql.execution.id")
    if running is None:
        return command
    execution = door.cls("org.apache.spark.sql.execution.SQLExecution").getQueryExecution(
        int(running)
    )
    if execution is None:
        return command
    plan = execution.analyzed()
    return plan if kind(plan) == kind(command) else command


def relation_of(plan: Any) -> Any:
    """Return the relation below aliases; None when there is more than that."""
    while plan is not None:
        match kind(plan):
            case "DataSourceV2Relation":
                return plan
            case "DataSourceV2ScanRelation":
                return plan.relation()
            case _:
                below = items(plan.children())
                plan = below[0] if len(below) == 1 else None
    return None


def python_object(door: Door, proxy: Any) -> Any:
    """Return the Python object that Java knows as a proxy."""
    handler = door.member("java.lang.reflect.Proxy", "getInvocationHandler")(proxy)
    field = handler.getClass().getDeclaredField("id")
    field.setAccessible(True)
    return door.gateway.gateway_property.pool[field.get(handler)]


def aligned(door: Door, attributes: Any, assignments: Any, *, inserts: bool) -> list[Any]:
    """Return one assignment for each column, members of structs put in their places."""
    name = f"{_CATALYST}.analysis.AssignmentUtils"
    method = "alignInsertAssignments" if inserts else "alignUpdateAssignments"
    every = door.member("java.lang.Class", "forName")(name).getMethods()
    count = next(int(m.getParameterCount()) for m in every if m.getName() == method)
    flags = [False] * (count - 2)
    return items(getattr(door.cls(name), method)(attributes, assignments, *flags))


def translated(door: Door, condition: Any) -> Any:
    """Return a condition as Spark hands it to sources; None when it has no such form."""
    strategy = door.cls("org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy$")
    found = getattr(strategy, "MODULE$").translateFilterV2(condition)
    return found.get() if found.isDefined() else None


def attribute_map(door: Door, pairs: Iterable[tuple[Any, Any]]) -> Any:
    """Return a map from attributes to attributes."""
    tuples = seq(door, [door.cls("scala.Tuple2")(before, after) for before, after in pairs])
    maps = door.cls(f"{_CATALYST}.expressions.AttributeMap$")
    return getattr(maps, "MODULE$").apply(tuples)


def renumbered(door: Door, found: Any, numbers: Any) -> Any:
    """Return an expression with other attributes, in its subqueries too."""
    nothing = door.cls(f"{_CATALYST}.plans.logical.OneRowRelation")()
    made = door.cls(f"{_CATALYST}.plans.logical.Filter")(found, nothing)
    return made.rewriteAttrs(numbers).condition()
