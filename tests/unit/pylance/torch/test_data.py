"""Tables as PyTorch data sets, with a stand-in for the library, which is not installed here."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import UnsupportedError

MODULES = ("dist", "data")


def _library() -> ModuleType:
    """Return the part of PyTorch that is used, with arrays for tensors."""
    made: Any = ModuleType("torch")
    made.utils = ModuleType("torch.utils")
    made.utils.data = ModuleType("torch.utils.data")
    made.utils.data.IterableDataset = type("IterableDataset", (), {})
    made.utils.data.Dataset = type("Dataset", (), {})
    made.utils.data.get_worker_info = lambda: None
    made.utils.data.DataLoader = lambda dataset, **options: (dataset, options)
    made.distributed = SimpleNamespace(is_initialized=lambda: False)
    made.multiprocessing = SimpleNamespace(get_context=lambda name: name)
    made.from_numpy = lambda values: values
    return made


def _loaded() -> Any:
    for name in MODULES:
        importlib.reload(importlib.import_module(f"lancelake.pylance.torch.{name}"))
    return sys.modules["lancelake.pylance.torch.data"]


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    made: Any = _library()
    parts = {"torch": made, "torch.utils": made.utils, "torch.utils.data": made.utils.data}
    for name, module in parts.items():
        monkeypatch.setitem(sys.modules, name, module)
    yield _loaded()
    monkeypatch.undo()
    _loaded()


@pytest.fixture
def table(tmp_path: Path) -> lance.LanceDataset:
    rows = {
        "n": pa.array(range(10), pa.uint64()),
        "f": pa.array([0.5 * i for i in range(10)]),
        "v": pa.array([[i, i + 1] for i in range(10)], pa.list_(pa.float32(), 2)),
    }
    return lance.write_dataset(pa.table(rows), str(tmp_path / "t"), max_rows_per_file=4)


def test_batches_are_tensors_by_name(data: Any, table: lance.LanceDataset) -> None:
    found = list(data.LanceDataset(table, 4))
    assert [sorted(batch) for batch in found] == [["f", "n", "v"]] * 3
    assert np.concatenate([batch["n"] for batch in found]).tolist() == list(range(10))
    assert found[0]["n"].dtype == np.int64
    assert found[1]["v"].tolist() == [[4, 5], [5, 6], [6, 7], [7, 8]]


def test_a_single_column_is_a_tensor(data: Any, table: lance.LanceDataset) -> None:
    found = list(data.LanceDataset(table.uri, 100, columns=["f"], filter="n >= 8"))
    assert np.concatenate(found).tolist() == [4.0, 4.5]


def test_workers_share_the_fragments(data: Any, table: lance.LanceDataset) -> None:
    parts = [
        np.concatenate(list(data.LanceDataset(table, 4, columns=["n"], rank=r, world_size=2)))
        for r in range(2)
    ]
    assert sorted(np.concatenate(parts).tolist()) == list(range(10))
    assert parts[1].tolist() == [4, 5, 6, 7]


def test_without_conversion_batches_are_arrow(data: Any, table: lance.LanceDataset) -> None:
    found = list(data.LanceDataset(table, 100, samples=9, columns=["n"], to_tensor_fn=None))
    assert all(isinstance(batch, pa.RecordBatch) for batch in found)
    assert sum(batch.num_rows for batch in found) == 9


def test_text_needs_a_conversion(data: Any, tmp_path: Path) -> None:
    made = lance.write_dataset(pa.table({"s": ["a"]}), str(tmp_path / "s"))
    with pytest.raises(UnsupportedError, match="'s' of type string"):
        list(data.LanceDataset(made, 1))


def test_a_cache_is_refused(data: Any, table: lance.LanceDataset) -> None:
    with pytest.raises(UnsupportedError, match="cache"):
        data.LanceDataset(table, 1, cache=True)


def test_rows_are_found_by_number(data: Any, table: lance.LanceDataset) -> None:
    rows = data.SafeLanceDataset(table.uri)
    assert len(rows) == 10
    assert rows[3]["n"] == 3
    assert [row["n"] for row in rows.__getitems__([7, 2])] == [7, 2]


def test_a_loader_spawns_its_workers(data: Any, table: lance.LanceDataset) -> None:
    _, options = data.get_safe_loader(table, num_workers=1, persistent_workers=False)
    assert options["multiprocessing_context"] == "spawn"
    assert options["persistent_workers"] is False


def test_without_pytorch_the_error_names_it(
    monkeypatch: pytest.MonkeyPatch, table: lance.LanceDataset
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    module = importlib.import_module("lancelake.pylance.torch.data")
    with pytest.raises(ModuleNotFoundError, match="torch, which is not installed"):
        module.LanceDataset(table, 1)
    with pytest.raises(ModuleNotFoundError, match="torch, which is not installed"):
        lance_torch = importlib.import_module("lancelake.pylance.torch")
        lance_torch.preferred_device()
