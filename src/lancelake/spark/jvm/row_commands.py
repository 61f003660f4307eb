"""Planner strategy that runs DELETE, UPDATE and MERGE in Python.

A strategy of Spark's planner must be a JVM class, so one is compiled when a session is registered,
by the compiler that Spark uses for generated code. It is only used on the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from py4j.protocol import Py4JError

from lancelake.errors import UnsupportedError
from lancelake.spark.jvm.catalyst import items, seq
from lancelake.spark.jvm.compiled import driver_object
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.jvm.proxy import Proxy

_SOURCE = "RowCommands"
_CLASS = f"lancelake.{_SOURCE}"


class _Handler(Proxy):
    """A Java function that runs a command in Python."""

    class Java:
        """Interfaces for Py4J."""

        implements = ("java.util.function.Function",)

    def __init__(self, gateway: Gateway, run: Callable[[Any], Mapping[str, int]]) -> None:
        super().__init__(gateway)
        self._run = run

    def apply(self, plan: Any) -> Any:
        result = self.gateway.cls("java.util.HashMap")()
        for name, count in self._run(plan).items():
            result.put(name, count)
        return result


def take_row_commands(gateway: Gateway, run: Callable[[Any], Mapping[str, int]]) -> None:
    """Let `run` execute the commands of this session whose target is a Lance table.

    It returns the numbers of rows that were inserted, updated and deleted.
    """
    try:
        strategy = driver_object(gateway, _SOURCE, _Handler(gateway, run))
        methods = gateway.spark._jsparkSession.experimental()
        others = [s for s in items(methods.extraStrategies()) if _name(s) != _CLASS]
        getattr(methods, "extraStrategies_$eq")(seq(gateway, [strategy, *others]))
    except Py4JError as error:
        problem = f"UPDATE and MERGE cannot run in Python on Spark {gateway.spark.version}: {error}"
        raise UnsupportedError(problem, spark=gateway.spark.version) from error


def _name(strategy: Any) -> str:
    return str(strategy.getClass().getName())
