"""PyTorch data sets of the rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.pylance._values.opened import call_text
from lancelake.pylance.sampler import (
    FullScanSampler,
    Sampler,
    ShardedBatchSampler,
    ShardedFragmentSampler,
    maybe_sample,
)
from lancelake.pylance.torch.dist import base_class, get_global_rank, get_global_world_size, torch

__all__ = ["LanceDataset", "SafeLanceDataset", "get_safe_loader"]

_BLOB = {b"lance-encoding:blob": b"true"}


def to_tensors(batch: pa.RecordBatch | dict[str, Any], **_: Any) -> Any:
    """Convert columns of numbers, booleans and vectors to tensors: by name, or the only one."""
    names = batch.schema.names if isinstance(batch, pa.RecordBatch) else list(batch)
    tensors = {name: _tensor(name, batch[name]) for name in names}
    return next(iter(tensors.values())) if len(tensors) == 1 else tensors


def _tensor(name: str, values: Any) -> Any:
    if isinstance(values, list):
        raise UnsupportedError(f"blobs of column {name!r} need a to_tensor_fn", column=name)
    array = values.storage if isinstance(values.type, pa.FixedShapeTensorType) else values
    dtype = array.type
    item = dtype.value_type if pa.types.is_fixed_size_list(dtype) else dtype
    is_number = pa.types.is_integer(item) or pa.types.is_floating(item)
    if not is_number and not pa.types.is_boolean(dtype):
        problem = f"column {name!r} of type {dtype} cannot become a tensor"
        raise UnsupportedError(problem, column=name, action="Give a to_tensor_fn.")
    if item is not dtype:
        # `values` has the rows before and after a slice, too.
        first, size = array.offset * dtype.list_size, len(array) * dtype.list_size
        array = array.values.slice(first, size)
    numbers = array.to_numpy(zero_copy_only=False)
    if numbers.dtype == np.uint64:
        numbers = numbers.astype(np.int64)
    rows = numbers.reshape(-1, dtype.list_size) if item is not dtype else numbers
    return torch().from_numpy(rows if rows.flags.writeable else rows.copy())


class LanceDataset(base_class("IterableDataset")):  # type: ignore[misc]  # known at run time
    """Iterates over batches of a table as tensors."""

    def __init__(
        self,
        dataset: lance.LanceDataset | str | Path,
        batch_size: int,
        *args: Any,
        dataset_options: dict[str, Any] | None = None,
        columns: list[str] | dict[str, str] | None = None,
        filter: str | None = None,
        samples: int | None = 0,
        cache: str | bool | None = None,
        with_row_id: bool = False,
        rank: int | None = None,
        world_size: int | None = None,
        shard_granularity: str | None = None,
        batch_readahead: int = 16,
        to_tensor_fn: Callable[..., Any] | None = to_tensors,
        sampler: Sampler | None = None,
        auto_detect_rank: bool = True,
        **kwargs: Any,
    ) -> None:
        """Read `columns` of the rows that match `filter`, or of a sample of `samples` rows.

        `shard_granularity`, "fragment" or "batch", is what workers share; `sampler` replaces it.
        Without `to_tensor_fn`, batches are those of Arrow.
        """
        torch()
        super().__init__()
        if args or kwargs:
            raise TypeError(f"unknown arguments: {[*args, *kwargs]}")
        if cache:
            raise UnsupportedError("a cache of batches on disk is not supported", option="cache")
        if shard_granularity not in (None, "fragment", "batch"):
            problem = f"Invalid shard_granularity: {shard_granularity}"
            raise InvalidRequestError(problem, shard_granularity=shard_granularity)
        if not isinstance(dataset, lance.LanceDataset):
            dataset = lance.dataset(dataset, **(dataset_options or {}))
        self.dataset: lance.LanceDataset = dataset
        self.batch_size, self.columns = batch_size, columns
        self.filter, self.samples = filter, samples
        self.rank, self.world_size = rank, world_size
        self.shard_granularity, self.sampler = shard_granularity, sampler
        self.batch_readahead = batch_readahead
        self._to_tensor_fn, self._finds_rank = to_tensor_fn, auto_detect_rank
        self._blobs = [name for name in self._names() if self._is_blob(name)]
        self.with_row_id = with_row_id or bool(self._blobs)

    def __repr__(self) -> str:
        """Name the table."""
        return f"LanceTorchDataset({self.dataset.uri}, size={self.samples})"

    @property
    def schema(self) -> pa.Schema:
        """Schema of the columns."""
        if not self.columns:
            return self.dataset.schema
        return pa.schema([self.dataset.schema.field(name) for name in self.columns])

    def __iter__(self) -> Iterator[Any]:
        """Yield the batches of this worker."""
        for batch in self._batches():
            value: Any = batch
            if self._blobs:
                ids = batch["_rowid"].to_pylist()
                value = {name: batch[name] for name in batch.schema.names}
                value |= {name: self.dataset.take_blobs(name, ids=ids) for name in self._blobs}
            if self._to_tensor_fn is not None:
                value = self._to_tensor_fn(value, hf_converter=None, use_blob_api=bool(self._blobs))
            yield value

    def _batches(self) -> Iterator[pa.RecordBatch]:
        columns: Any = self.columns
        if self._blobs:
            columns = [name for name in self._names() if name not in self._blobs]
        if self.samples:
            yield from maybe_sample(
                self.dataset, self.samples, columns, self.batch_size, filt=self.filter
            )
            return
        yield from (self.sampler or self._own_sampler())(
            self.dataset,
            columns=columns,
            filter=self.filter,
            batch_size=self.batch_size,
            with_row_id=self.with_row_id,
            batch_readahead=self.batch_readahead,
        )

    def _own_sampler(self) -> Sampler:
        rank, size = self.rank, self.world_size
        if self._finds_rank:
            rank = get_global_rank() if rank is None else rank
            size = get_global_world_size() if size is None else size
        if rank is None or size is None:
            return FullScanSampler()
        if self.shard_granularity == "batch":
            return ShardedBatchSampler(rank, size)
        return ShardedFragmentSampler(rank, size)

    def _names(self) -> list[str]:
        return list(self.columns or self.dataset.schema.names)

    def _is_blob(self, name: str) -> bool:
        if isinstance(self.columns, dict):
            return False
        field = self.dataset.schema.field(name)
        return field.type == pa.large_binary() and _BLOB.items() <= (field.metadata or {}).items()


class SafeLanceDataset(base_class("Dataset")):  # type: ignore[misc]  # known at run time
    """Rows of a table by number; each worker process opens the table itself."""

    def __init__(self, uri: str, *, dataset_options: dict[str, Any] | None = None) -> None:
        torch()
        super().__init__()
        self.uri = uri
        self.dataset_options = dataset_options or {}
        self._rows = self._open().count_rows()
        self._dataset: lance.LanceDataset | None = None

    def __repr__(self) -> str:
        return call_text(self, self.uri)

    def __len__(self) -> int:
        """Count the rows."""
        return self._rows

    def __getitem__(self, idx: int) -> dict[str, Any]:
        """Return a row."""
        return self.__getitems__([idx])[0]

    def __getitems__(self, indices: list[int]) -> list[dict[str, Any]]:
        """Return rows."""
        if self._dataset is None:
            self._dataset = self._open()
        rows: list[dict[str, Any]] = self._dataset.take(indices).to_pylist()
        return rows

    def _open(self) -> lance.LanceDataset:
        return lance.dataset(self.uri, **self.dataset_options)


def get_safe_loader(dataset: Any, batch_size: int = 32, num_workers: int = 4, **kwargs: Any) -> Any:
    """Return a `DataLoader` whose workers are spawned and kept; `kwargs` are its arguments."""
    library = torch()
    options = {
        "batch_size": batch_size,
        "num_workers": num_workers,
        "persistent_workers": True,
        "multiprocessing_context": library.multiprocessing.get_context("spawn"),
        **kwargs,
    }
    return library.utils.data.DataLoader(dataset, **options)
