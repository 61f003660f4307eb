"""Number of this process among those of `torch.distributed` and of a `DataLoader`."""

from __future__ import annotations

import importlib
from typing import Any

from lancelake.extras import optional

__all__ = [
    "get_dist_rank",
    "get_dist_world_size",
    "get_global_rank",
    "get_global_world_size",
    "get_mp_rank",
    "get_mp_world_size",
]


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


def get_dist_world_size() -> int:
    """Count the processes of distributed training, 1 without it."""
    processes = torch().distributed
    return int(processes.get_world_size()) if processes.is_initialized() else 1


def get_dist_rank() -> int:
    """Return the number of this process in distributed training, 0 without it."""
    processes = torch().distributed
    return int(processes.get_rank()) if processes.is_initialized() else 0


def get_mp_world_size() -> int:
    """Count the workers of this process's `DataLoader`, 1 outside of a worker."""
    worker = _worker()
    return 1 if worker is None else int(worker.num_workers)


def get_mp_rank() -> int:
    """Return the number of this worker of a `DataLoader`, 0 outside of a worker."""
    worker = _worker()
    return 0 if worker is None else int(worker.id)


def get_global_world_size() -> int:
    """Count the workers of all processes."""
    return get_dist_world_size() * get_mp_world_size()


def get_global_rank() -> int:
    """Return the number of this worker among those of all processes."""
    return get_dist_rank() * get_mp_world_size() + get_mp_rank()


def _worker() -> Any:
    return torch().utils.data.get_worker_info()
