"""Public objects have readable texts."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lancelake.pylance as lance
from lancelake.pylance._values.opened import call_text, chosen
from lancelake.pylance.query import BooleanQuery, MatchQuery, Occur, PhraseQuery

# Parts that LanceDataset and LanceFragment are made of.
PARTS = ("Dataset", "Arrow", "Fragment")
NAMESPACES = {"Compaction", "LanceOperation"}
MODULES = (
    "lancelake",
    "lancelake.pylance",
    *(
        f"lancelake.pylance.{name}"
        for name in (
            *("blob", "dataset", "fragment", "hf", "indices", "indices.builder", "mem_wal"),
            *("optimize", "progress", "query", "sampler", "torch.data", "udf"),
        )
    ),
)
KNOWN = {"DatasetDelta", "DatasetOptimizer", "FragmentSession"}


@dataclass(frozen=True, kw_only=True)
class _Request:
    name: str
    limit: int | None = None
    order: tuple[str, ...] = ()
    seen: dict[str, int] = field(default_factory=dict)
    values: Any = None


@pytest.fixture
def ds(tmp_path: Path) -> lance.LanceDataset:
    return lance.write_dataset(pa.table({"id": [1, 2, 3]}), tmp_path / "t.lance")


def test_only_what_was_chosen_is_shown() -> None:
    assert chosen(_Request(name="a")) == {"name": "a"}
    assert chosen(_Request(name="a", limit=0, seen={"b": 1})) == {
        "name": "a",
        "limit": 0,
        "seen": {"b": 1},
    }


def test_values_without_a_plain_comparison() -> None:
    for values in (np.arange(3), pc.field("a") > 1):
        assert chosen(_Request(name="a", values=values))["values"] is values


def test_a_long_value_is_shortened() -> None:
    text = call_text(object(), "x" * 1000, left=None)
    assert (len(text) < 250, text.endswith("…)"), "left" in text) == (True, True, False)


def test_scans(ds: lance.LanceDataset) -> None:
    scanner = ds.scanner(columns=["id"], filter="id > 1", limit=3)
    assert repr(scanner) == (
        f"LanceScanner('{ds.uri}', version=1, columns=('id',), filter='id > 1', limit=3)"
    )
    assert repr(ds.scanner(filter=pc.field("id") > 1)).endswith(
        "filter=<pyarrow.compute.Expression (id > 1)>)"
    )
    assert repr(ds.sql("SELECT 1")) == f"SqlQueryBuilder('{ds.uri}', version=1, text='SELECT 1')"


def test_builders(ds: lance.LanceDataset) -> None:
    assert repr(ds.merge_insert("id")) == f"MergeInsertBuilder({ds!r}, on=('id',))"
    assert repr(ds.optimize) == f"DatasetOptimizer({ds!r})"
    assert repr(ds.stats) == f"LanceStats('{ds.uri}', version=1)"


def test_text_queries() -> None:
    match = MatchQuery("boats", "caption", boost=2.0)
    assert repr(match) == "MatchQuery(column='caption', text='boats', boost=2.0)"
    assert (
        repr(PhraseQuery("old mill", "caption")) == "PhraseQuery(column='caption', text='old mill')"
    )
    assert "text='boats'" in repr(BooleanQuery([(Occur.MUST, match)]))


@pytest.mark.parametrize("name", MODULES)
def test_public_classes_have_a_text_of_their_own(name: str) -> None:
    module = importlib.import_module(name)
    classes = [
        each
        for each_name in {*vars(module), *getattr(module, "__all__", ())}
        if inspect.isclass(each := getattr(module, each_name))
        and each.__module__.startswith("lancelake.pylance")
        and not each_name.startswith("_")
        and not inspect.isabstract(each)
        and not getattr(each, "_is_protocol", False)
        and each_name not in NAMESPACES
        and (each_name in KNOWN or not each_name.startswith(PARTS))
    ]
    assert classes
    assert [each.__name__ for each in classes if each.__repr__ is object.__repr__] == []
