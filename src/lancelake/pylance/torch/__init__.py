"""Tables as PyTorch data sets; PyTorch is imported when something is used."""

from __future__ import annotations

from typing import Any

from lancelake.pylance.torch.dist import torch

__all__ = ["preferred_device"]


def preferred_device(device: Any = None) -> Any:
    """Return a device as `torch.device`; without one, a GPU if there is one, else the CPU."""
    library = torch()
    if device is not None:
        return library.device(device) if isinstance(device, str) else device
    if library.cuda.is_available():
        return library.device("cuda")
    if library.backends.mps.is_available() and library.backends.mps.is_built():
        return library.device("mps")
    return library.device("cpu")
