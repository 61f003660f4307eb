"""Devices of PyTorch: which names are known, and what is said where there is none."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from lancelake.errors import InvalidRequestError, MissingPackageError, UnsupportedError
from lancelake.index.vector.clustering import Accelerator, accelerator_named

CHANCE = np.random.default_rng(2)


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="'cuda' or 'mps', not 'tpu'"):
        accelerator_named("tpu")


def test_without_pytorch_its_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingPackageError, match=r"lancelake\[torch\]"):
        accelerator_named("cuda:0")


def test_without_a_device_the_cpu_is_suggested(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = SimpleNamespace(is_available=lambda: False)
    torch = SimpleNamespace(cuda=nothing, backends=SimpleNamespace(mps=nothing))
    monkeypatch.setitem(sys.modules, "torch", torch)
    for name in ("cuda", "mps"):
        with pytest.raises(UnsupportedError, match="finds no such device"):
            accelerator_named(name)


def test_a_number_beyond_the_devices_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = SimpleNamespace(is_available=lambda: True, device_count=lambda: 2)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    assert accelerator_named("cuda").device == "cuda"
    assert accelerator_named("cuda:1").device == "cuda:1"
    with pytest.raises(UnsupportedError, match="'cuda:2' is not available"):
        accelerator_named("cuda:2")


def test_clusters_are_found_and_assigned() -> None:
    torch = pytest.importorskip("torch")
    device = Accelerator(torch, "cpu")
    centers = np.eye(4, 8, dtype=np.float32) * 10
    vectors = centers[np.arange(400) % 4] + CHANCE.standard_normal((400, 8)).astype(np.float32)
    found, loss = device.clustered(vectors, 4, 10)
    numbers = device.nearest(vectors, found)
    assert len({(int(a), i % 4) for i, a in enumerate(numbers)}) == 4
    assert loss == pytest.approx(((vectors - found[numbers]) ** 2).sum(), rel=1e-3)
