"""Sessions that are planned in Python, and the errors for other sessions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lancelake.errors import UnsupportedError
from lancelake.spark.jvm.gateway import is_classic, open_gateway
from lancelake.spark.jvm.proxy import error_of


def session(version: str) -> Any:
    context = SimpleNamespace(_gateway=object())
    return SimpleNamespace(version=version, sparkContext=context, _jsparkSession=object())


def test_an_unknown_spark_is_refused_by_version() -> None:
    with pytest.raises(UnsupportedError, match=r"not on 5\.0\.0"):
        open_gateway(session("5.0.0"))


def test_connect_is_asked_to_use_a_classic_session() -> None:
    connect: Any = SimpleNamespace(version="4.3.0")
    assert not is_classic(connect)
    with pytest.raises(UnsupportedError, match="Spark Connect session"):
        open_gateway(connect)


def test_an_error_of_a_worker_is_found_in_its_traceback() -> None:
    text = "Traceback ...\nlancelake.errors.CorruptTableError: file x is cut off\n SQLSTATE: 38000"
    found = error_of(RuntimeError(text))
    assert type(found).__name__ == "CorruptTableError"
    assert str(found) == "file x is cut off"


def test_an_error_of_spark_is_not_one_of_this_library() -> None:
    assert error_of(RuntimeError("something else")) is None
