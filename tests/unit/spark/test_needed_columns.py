from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import AnalysisException
from pyspark.logger import PySparkLogger

from lancelake.spark.tasks.columns import needed_columns

NAMES = [f"c{i}" for i in range(12)]


class Frame:
    """A frame that is resolved when it has the columns that are named."""

    def __init__(self, named: set[str], columns: Sequence[str]) -> None:
        self._missing = named - set(columns)

    @property
    def schema(self) -> None:
        if self._missing:
            raise AnalysisException(f"unknown: {sorted(self._missing)}")


def builder(named: set[str], tried: list[Sequence[str]] | None = None) -> Any:
    def build(columns: Sequence[str]) -> Frame:
        if tried is not None:
            tried.append(columns)
        return Frame(named, columns)

    return build


@given(named=st.sets(st.sampled_from(NAMES)), always=st.sets(st.sampled_from(NAMES)))
def test_the_columns_found_are_those_named_and_those_always_read(
    named: set[str], always: set[str]
) -> None:
    found = needed_columns(builder(named), NAMES, tuple(always))
    assert found == tuple(name for name in NAMES if name in named | always)


def test_few_columns_of_many_are_found_in_few_tries() -> None:
    tried: list[Sequence[str]] = []
    columns = [f"c{i}" for i in range(1024)]
    assert needed_columns(builder({"c7", "c900"}, tried), columns) == ("c7", "c900")
    assert len(tried) < 60


def test_a_column_named_like_a_function_is_read() -> None:
    assert needed_columns(builder(set()), ["id", "Current_Date"]) == ("Current_Date",)


def test_tries_that_fail_are_not_logged() -> None:
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    seen: list[bool] = []

    def build(columns: Sequence[str]) -> Any:
        seen.append(logger.disabled)
        return Frame({"id"}, columns)

    needed_columns(build, ["id", "name"])
    assert seen[0] is False
    assert all(seen[1:])
    assert logger.disabled is False


def test_a_name_that_is_unknown_is_an_error_of_spark() -> None:
    with pytest.raises(AnalysisException, match="idd"):
        needed_columns(builder({"idd"}), ["id"])
