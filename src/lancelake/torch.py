"""PyTorch data sets and samplers of tables; PyTorch is imported when one is created."""

from __future__ import annotations

from lancelake.pylance.sampler import (
    FragmentSampler,
    FullScanSampler,
    Sampler,
    ShardedBatchSampler,
    ShardedFixedBatchSampler,
    ShardedFragmentSampler,
)
from lancelake.pylance.torch.data import LanceDataset, SafeLanceDataset, get_safe_loader

__all__ = [
    "FragmentSampler",
    "FullScanSampler",
    "LanceDataset",
    "SafeLanceDataset",
    "Sampler",
    "ShardedBatchSampler",
    "ShardedFixedBatchSampler",
    "ShardedFragmentSampler",
    "get_safe_loader",
]
