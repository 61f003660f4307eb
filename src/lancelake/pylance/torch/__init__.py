"""Tables as PyTorch data sets; PyTorch is imported when something is used."""

from __future__ import annotations

from typing import Any

from lancelake.pylance.torch.installed import torch

__all__ = ["preferred_device"]


def preferred_device(device: Any = None) -> Any:
    """Return a device as `torch.device`; without one, a GPU if there is one, else the CPU."""
    found = torch()
    if device is not None:
        return found.device(device) if isinstance(device, str) else device
    if found.cuda.is_available():
        return found.device("cuda")
    if found.backends.mps.is_available() and found.backends.mps.is_built():
        return found.device("mps")
    return found.device("cpu")
