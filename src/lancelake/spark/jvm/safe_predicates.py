"""Optimizer rule that keeps Spark from failing on conditions that it cannot translate."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError

from lancelake.errors import UnsupportedError
from lancelake.spark.jvm.compiled import driver_class
from lancelake.spark.jvm.gateway import Gateway

_CLASS = "SafePredicates"


def ensure_safe_predicates(gateway: Gateway) -> None:
    """Add the rule to the optimizer of an application, whose sessions share their extensions."""

    def inject() -> bool:
        loader = driver_class(gateway, _CLASS).getClassLoader()
        builder: Any = loader.loadClass(f"lancelake.{_CLASS}$Builder").getConstructors()[0]
        arguments = gateway.array(gateway.cls("java.lang.Object"), [])
        extensions = gateway.spark._jsparkSession.extensions()
        extensions.injectOptimizerRule(builder.newInstance(arguments))
        return True

    try:
        gateway.once("rule of safe predicates", inject)
    except Py4JError as error:
        problem = f"Spark {gateway.spark.version} does not accept an optimizer rule: {error}"
        raise UnsupportedError(problem, spark=gateway.spark.version) from error
