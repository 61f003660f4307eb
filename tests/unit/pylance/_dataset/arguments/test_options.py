"""Keyword arguments that are passed on have names and types."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import lancelake.pylance as lance
from lancelake.pylance._dataset import arguments
from lancelake.pylance._dataset.maintenance import DatasetOptimizer
from lancelake.pylance._dataset.wal import TableWal
from lancelake.pylance._dataset.wal_reads import WalScanner
from lancelake.pylance.fragment import write_fragments

SCAN = set(inspect.signature(lance.LanceDataset.scanner).parameters) - {"self"}
CLASSES = (lance.LanceDataset, lance.LanceFragment, DatasetOptimizer, TableWal, WalScanner)
CALLS = {
    "write_dataset": lance.write_dataset,
    "write_fragments": write_fragments,
    "LanceScanner.to_pandas": lance.LanceScanner.to_pandas,
    **{
        f"{cls.__name__}.{name}": member
        for cls in CLASSES
        for name, member in inspect.getmembers(cls, callable)
        if name == "__init__" or not name.startswith("_")
    },
}


def rest_of(call: Any) -> str | None:
    """Return the annotation of `**kwargs`, None without one."""
    own = inspect.signature(call).parameters.values()
    return next((str(p.annotation) for p in own if p.kind is p.VAR_KEYWORD), None)


@pytest.mark.parametrize("name", CALLS)
def test_no_keyword_is_of_any_name_and_type(name: str) -> None:
    assert rest_of(CALLS[name]) not in {"Any", "typing.Any", "<class 'inspect._empty'>"}


@pytest.mark.parametrize(
    "method", [lance.LanceDataset.to_table, lance.LanceDataset.to_batches], ids=["table", "batches"]
)
def test_a_method_has_the_arguments_of_a_scan(method: Any) -> None:
    assert set(inspect.signature(method).parameters) - {"self"} == SCAN


def test_counting_takes_all_but_columns_and_filter() -> None:
    assert set(arguments.CountOptions.__annotations__) == SCAN - {"columns", "filter"}


def test_the_head_takes_all_but_the_limit() -> None:
    assert set(arguments.HeadOptions.__annotations__) == SCAN - {"limit"}
