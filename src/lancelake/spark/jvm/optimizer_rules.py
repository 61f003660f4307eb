"""Rules in Spark's optimizer for plans with Lance tables."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError

from lancelake.errors import UnsupportedError
from lancelake.spark.jvm.catalyst import items, seq
from lancelake.spark.jvm.compiled import driver_class
from lancelake.spark.jvm.gateway import Gateway

_CONDITIONS = "SafePredicates"
_PRUNING = "SelectiveScans"


def take_optimizer_rules(gateway: Gateway) -> None:
    """Add the rules to a session.

    The sessions of an application share their extensions, but not their experimental methods.
    """
    try:
        gateway.once("rules of the optimizer", lambda: _extend(gateway))
        methods = gateway.spark._jsparkSession.experimental()
        others = [r for r in items(methods.extraOptimizations()) if _name(r) != _PRUNING]
        rules = seq(gateway, [*others, _made(gateway, _PRUNING)])
        getattr(methods, "extraOptimizations_$eq")(rules)
    except Py4JError as error:
        problem = f"Spark {gateway.spark.version} does not accept an optimizer rule: {error}"
        raise UnsupportedError(problem, spark=gateway.spark.version) from error


def _extend(gateway: Gateway) -> bool:
    builder = _made(gateway, f"{_CONDITIONS}$Builder")
    gateway.spark._jsparkSession.extensions().injectOptimizerRule(builder)
    return True


def _made(gateway: Gateway, name: str) -> Any:
    """Create an object of a class, which may be inside of another one."""
    loader = driver_class(gateway, name.partition("$")[0]).getClassLoader()
    constructor = loader.loadClass(f"lancelake.{name}").getConstructors()[0]
    return constructor.newInstance(gateway.array(gateway.cls("java.lang.Object"), []))


def _name(rule: Any) -> str:
    return str(rule.getClass().getName()).removeprefix("lancelake.")
