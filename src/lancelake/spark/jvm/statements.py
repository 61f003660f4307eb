"""Statements that Spark's grammar does not have, in the parser of a session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JError

from lancelake.errors import UnsupportedError
from lancelake.spark.jvm.compiled import driver_class
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.jvm.proxy import Proxy

_SOURCE = "Statements"
_CLASS = f"lancelake.{_SOURCE}"


class _Translator(Proxy):
    """A Java function that translates a statement in Python."""

    class Java:
        """Interfaces for Py4J."""

        implements = ("java.util.function.Function",)

    def __init__(self, gateway: Gateway, translate: Callable[[str], str | None]) -> None:
        super().__init__(gateway)
        self._translate = translate

    def apply(self, text: str) -> str | None:
        return self._translate(text)


def take_statements(gateway: Gateway, translate: Callable[[str], str | None]) -> None:
    """Let `translate` replace OPTIMIZE, VACUUM, RESTORE and DESCRIBE HISTORY in this session.

    It returns a statement that Spark has, or None for one that is not ours.
    """
    try:
        state = gateway.session_state()
        field = state.getClass().getDeclaredField("sqlParser")
        field.setAccessible(True)
        arguments = [_original(gateway, state.sqlParser()), _Translator(gateway, translate)]
        constructor = driver_class(gateway, _SOURCE).getConstructors()[0]
        made = constructor.newInstance(gateway.array(gateway.cls("java.lang.Object"), arguments))
        field.set(state, made.asParser())
    except Py4JError as error:
        problem = f"Spark {gateway.spark.version} does not accept a parser: {error}"
        raise UnsupportedError(problem, spark=gateway.spark.version) from error


def _original(gateway: Gateway, parser: Any) -> Any:
    """Return the parser of the session before it was replaced."""
    if not gateway.member("java.lang.reflect.Proxy", "isProxyClass")(parser.getClass()):
        return parser
    handler = gateway.member("java.lang.reflect.Proxy", "getInvocationHandler")(parser)
    if handler.getClass().getName() != _CLASS:
        return parser
    return handler.getClass().getField("parser").get(handler)
