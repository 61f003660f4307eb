"""Import of PyTorch, which is optional."""

from __future__ import annotations

import importlib
from typing import Any

from lancelake.extras import optional


def torch() -> Any:
    """Return the module `torch`."""
    return optional("torch", extra="torch", purpose="reading tables as tensors")


def base_class(name: str) -> Any:
    """Return a class of `torch.utils.data` to derive from; `object` without PyTorch.

    Constructors must call `torch`, which raises the error then.
    """
    try:
        return getattr(importlib.import_module("torch.utils.data"), name)
    except ModuleNotFoundError:
        return object
