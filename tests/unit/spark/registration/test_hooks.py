"""Methods of PySpark are replaced for registered sessions and for no other."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from lancelake.spark.registration import hooks
from lancelake.spark.registration.hooks import Hook, install, is_registered


class Reader:
    """A class of PySpark, as far as the registry looks at it."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark

    def load(self, path: str, *, limit: int = 0) -> str:
        """Read as PySpark does."""
        return f"plain {path} {limit}"


def replaced(original: Callable[..., str], reader: Reader, path: str, **options: Any) -> str:
    return f"ours {path} instead of {original(reader, path, **options)}"


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a session whose reader is replaced."""
    monkeypatch.setattr(Reader, "load", Reader.load)
    monkeypatch.setattr(hooks, "HOOKS", (Hook(Reader, "load", replaced),))
    monkeypatch.setattr(hooks, "_REGISTERED", {})
    found: Any = SimpleNamespace(_jvm=object())
    install(found)
    return found


def test_a_registered_session_gets_the_replacement(spark: Any) -> None:
    assert Reader(spark).load("a", limit=2) == "ours a instead of plain a 2"


def test_another_session_gets_the_method_of_pyspark(spark: Any) -> None:
    for other in (SimpleNamespace(_jvm=object()), SimpleNamespace(_jvm=None), SimpleNamespace()):
        assert not is_registered(other)
        assert Reader(other).load("a") == "plain a 0"


def test_registering_again_replaces_nothing_twice(spark: Any) -> None:
    once = Reader.load
    install(spark)
    install(SimpleNamespace(_jvm=object()))  # type: ignore[arg-type]
    assert Reader.load is once


def test_the_replacement_is_documented_as_the_method(spark: Any) -> None:
    assert Reader.load.__doc__ == "Read as PySpark does."


@pytest.mark.parametrize("hook", hooks.HOOKS, ids=lambda h: f"{h.owner.__name__}.{h.method}")
def test_every_method_exists_in_this_pyspark(hook: Hook) -> None:
    assert callable(getattr(hook.owner, hook.method))
