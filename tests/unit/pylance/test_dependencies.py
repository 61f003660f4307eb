"""Optional packages by name."""

from __future__ import annotations

import sys

import pandas as pd
import pytest

from lancelake.pylance import dependencies


def test_installed_packages_are_imported() -> None:
    assert dependencies.pandas is pd


def test_missing_packages_say_so_when_they_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    torch = dependencies.torch
    assert repr(torch) == "<package 'torch' (not installed)>"
    with pytest.raises(ModuleNotFoundError, match="requires the package torch") as caught:
        _ = torch.tensor
    assert caught.value.name == "torch"


def test_other_names_are_missing() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'requests'"):
        _ = dependencies.requests
    assert dir(dependencies) == ["datasets", "numpy", "pandas", "polars", "torch"]
