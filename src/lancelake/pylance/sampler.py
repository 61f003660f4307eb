"""Samples of tables, and samplers that divide a table between processes."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappush, heappushpop
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import pyarrow as pa

from lancelake.clock import Ids, SystemIds
from lancelake.core.values.metadata import default_session
from lancelake.pylance._dataset.arguments import Columns
from lancelake.pylance._values.opened import call_text
from lancelake.pylance.dataset import LanceDataset
from lancelake.pylance.fragment import LanceFragment

__all__ = [
    "FragmentSampler",
    "FullScanSampler",
    "PrioritizedItem",
    "Sampler",
    "ShardedBatchSampler",
    "ShardedFixedBatchSampler",
    "ShardedFragmentSampler",
    "maybe_sample",
    "reservoir_sampling",
]

T = TypeVar("T")

# Batches among which the next one of a filtered stream is chosen.
_RESERVOIR = 256


def maybe_sample(
    dataset: str | Path | LanceDataset,
    n: int,
    columns: list[str] | dict[str, str] | str,
    batch_size: int = 10240,
    max_takes: int = 2048,
    filt: str | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield a random sample of `n` rows, or all rows if there are fewer.

    At most `max_takes` places of the table are read, so larger samples consist of runs of rows.
    """
    source = LanceDataset(dataset) if isinstance(dataset, str | Path) else dataset
    names: Columns = [columns] if isinstance(columns, str) else columns
    if filt is not None:
        matching = source.to_table([], filt, with_row_address=True).column(0)
        addresses = matching.to_pylist()
        places = default_session().ids.sample(len(addresses), min(n, len(addresses)))
        for part in _parts([addresses[i] for i in places], batch_size):
            rows = source._take_rows(_row_ids(source, part), names)
            yield from rows.combine_chunks().to_batches()
        return
    total = source.count_rows()
    if n >= total:
        yield from source.to_batches(names, batch_size=batch_size)
        return
    for part in _parts(_runs(total, n, max_takes, default_session().ids), batch_size):
        yield from source.take(part, names).combine_chunks().to_batches()


def reservoir_sampling(stream: Iterable[T], k: int) -> list[T]:
    """Return a random sample of `k` items of a stream, or all if there are fewer."""
    ids = default_session().ids
    reservoir: list[T] = []
    for seen, item in enumerate(stream, start=1):
        if len(reservoir) < k:
            reservoir.append(item)
        elif (place := int(ids.random() * seen)) < k:
            reservoir[place] = item
    return reservoir


@dataclass(order=True)
class PrioritizedItem(Generic[T]):
    """An item, ordered by its priority."""

    priority: int
    item: T = field(compare=False)


class Sampler(ABC):
    """Yields batches of a dataset."""

    @abstractmethod
    def __call__(
        self,
        ds: LanceDataset,
        *args: Any,
        batch_size: int = 128,
        columns: Columns = None,
        filter: str | None = None,
        batch_readahead: int = 16,
        with_row_id: bool = False,
        **kwargs: Any,
    ) -> Iterator[pa.RecordBatch]:
        """Yield batches."""


class FragmentSampler(Sampler):
    """Scans fragments in the order of `iter_fragments`."""

    def __call__(  # type: ignore[override]  # as in pylance
        self,
        dataset: LanceDataset,
        *args: Any,
        batch_size: int = 128,
        columns: Columns = None,
        filter: str | None = None,
        batch_readahead: int = 16,
        with_row_id: bool = False,
        **kwargs: Any,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the batches of the fragments."""
        yield from dataset.scanner(
            batch_size=batch_size,
            columns=columns,
            filter=filter,
            with_row_id=with_row_id,
            batch_readahead=batch_readahead,
            fragments=list(self.iter_fragments(dataset, *args, **kwargs)),
        ).to_batches()

    @abstractmethod
    def iter_fragments(
        self, ds: LanceDataset, *args: Any, **kwargs: Any
    ) -> Iterator[LanceFragment]:
        """Yield the fragments to scan."""


class FullScanSampler(FragmentSampler):
    """Scans all fragments in order."""

    def __repr__(self) -> str:
        return call_text(self)

    def iter_fragments(self, dataset: LanceDataset, **kwargs: Any) -> Iterator[LanceFragment]:  # type: ignore[override]  # as in pylance
        """Yield all fragments."""
        yield from dataset.get_fragments()


class _Sharded:
    """A share of the work, for one of several processes."""

    def __init__(self, rank: int, world_size: int, randomize: bool = False, seed: int = 0) -> None:
        self._rank, self._world_size = rank, world_size
        self._randomize, self._seed, self._epoch = randomize, seed, 0

    def __repr__(self) -> str:
        order = {"randomize": True, "seed": self._seed} if self._randomize else {}
        return call_text(self, rank=self._rank, world_size=self._world_size, **order)

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the pass, which changes a random order."""
        self._epoch = epoch

    @classmethod
    def from_torch(cls, randomize: bool = False, seed: int = 0) -> Self:
        """Create the sampler of this process of `torch.distributed`."""
        return cls(*_torch_process(), randomize=randomize, seed=seed)


class ShardedFragmentSampler(_Sharded, FragmentSampler):
    """Scans the fragments of one of several processes."""

    def iter_fragments(self, dataset: LanceDataset, **kwargs: Any) -> Iterator[LanceFragment]:  # type: ignore[override]  # as in pylance
        """Yield the fragments of this process."""
        fragments = dataset.get_fragments()
        if self._randomize:
            fragments = _shuffle(fragments, self._seed + self._epoch)
        yield from fragments[self._rank :: self._world_size]


class ShardedBatchSampler(_Sharded, Sampler):
    """Yields the batches of one of several processes; with a filter, its rows."""

    def __call__(  # type: ignore[override]  # as in pylance
        self,
        dataset: LanceDataset,
        *args: Any,
        batch_size: int = 128,
        columns: Columns = None,
        filter: str | None = None,
        batch_readahead: int = 16,
        with_row_id: bool | None = None,
        **kwargs: Any,
    ) -> Iterator[pa.RecordBatch]:
        """Yield batches; without a filter, only the rows of this process are read."""
        if filter is not None:
            rows = dataset.scanner(
                columns, filter, batch_readahead=batch_readahead, with_row_id=with_row_id
            ).to_batches()
            shard = _batches(_every_nth(rows, self._rank, self._world_size), batch_size)
            return _mix(shard, self._ids()) if self._randomize else shard
        if with_row_id is not None:
            warnings.warn("with_row_id is not supported for ShardedBatchSampler", stacklevel=2)
        step = self._world_size * batch_size
        starts = list(range(self._rank * batch_size, dataset.count_rows(), step))
        if self._randomize:
            starts = _shuffle(starts, self._seed + self._epoch)
        return (b for start in starts for b in _slice(dataset, start, batch_size, columns))

    def _ids(self) -> Ids:
        return SystemIds(self._seed + self._epoch)


class ShardedFixedBatchSampler(ShardedBatchSampler):
    """Yields lists of row numbers: consecutive batches of one of several processes."""

    def __init__(
        self,
        rank: int,
        world_size: int,
        randomize: bool = False,
        seed: int = 0,
        batch_size: int = 0,
        total_num_rows: int = 0,
    ) -> None:
        super().__init__(rank, world_size, randomize, seed)
        self._total_num_rows, self._batch_size = total_num_rows, batch_size

    def __len__(self) -> int:
        """Count the batches of this process."""
        if self._batch_size == 0:
            return 0
        return math.ceil(math.ceil(self._total_num_rows / self._world_size) / self._batch_size)

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the row numbers of each batch."""
        share = math.ceil(self._total_num_rows / self._world_size)
        own = range(self._rank * share, min((self._rank + 1) * share, self._total_num_rows))
        starts = list(range(own.start, own.stop, max(self._batch_size, 1)))
        if self._randomize:
            starts = _shuffle(starts, self._seed + self._epoch)
        for start in starts:
            yield list(range(start, min(start + self._batch_size, own.stop)))

    @staticmethod
    def from_torch(  # type: ignore[override]  # as in pylance
        batch_size: int, total_num_rows: int, randomize: bool = False, seed: int = 0
    ) -> ShardedFixedBatchSampler:
        """Create the sampler of this process of `torch.distributed`."""
        place = _torch_process()
        return ShardedFixedBatchSampler(*place, randomize, seed, batch_size, total_num_rows)


def _torch_process() -> tuple[int, int]:
    import torch.distributed as processes  # type: ignore[import-not-found]  # noqa: PLC0415  # optional

    return processes.get_rank(), processes.get_world_size()


def _shuffle(items: list[T], seed: int) -> list[T]:
    return [items[i] for i in SystemIds(seed).sample(len(items), len(items))]


def _runs(total: int, count: int, most: int, ids: Ids) -> list[int]:
    """Return row numbers: single ones, or a run from each of `most` equal parts of the table."""
    if count <= most:
        return sorted(ids.sample(total, count))
    rows: list[int] = []
    for part in range(most):
        first, last = total * part // most, total * (part + 1) // most
        length = count * (part + 1) // most - count * part // most
        start = first + int(ids.random() * (last - first - length + 1))
        rows.extend(range(start, start + length))
    return rows


def _row_ids(dataset: LanceDataset, addresses: list[int]) -> list[int]:
    if not dataset.has_stable_row_ids:
        return addresses
    listed = ", ".join(map(str, addresses))
    rows = dataset.to_table([], f"_rowaddr IN ({listed})", with_row_id=True)
    return [int(number) for number in rows.column("_rowid").to_pylist()]


def _parts(items: list[T], size: int) -> Iterator[list[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _slice(
    dataset: LanceDataset, start: int, rows: int, columns: Columns
) -> Iterator[pa.RecordBatch]:
    table = dataset.to_table(columns, offset=start, limit=rows, batch_size=rows)
    yield from table.combine_chunks().to_batches()


def _every_nth(
    batches: Iterable[pa.RecordBatch], first: int, step: int
) -> Iterator[pa.RecordBatch]:
    skip = first
    for batch in batches:
        rows = list(range(skip, batch.num_rows, step))
        skip = (skip - batch.num_rows) % step
        yield batch.take(pa.array(rows, pa.int64()))


def _batches(rows: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    """Yield batches of this size; the last may be smaller."""
    rest: pa.Table | None = None
    for batch in rows:
        part = pa.Table.from_batches([batch])
        rest = part if rest is None else pa.concat_tables([rest, part])
        while rest.num_rows >= size:
            yield from rest.slice(0, size).combine_chunks().to_batches()
            rest = rest.slice(size)
    if rest is not None and rest.num_rows:
        yield from rest.combine_chunks().to_batches()


def _mix(batches: Iterable[pa.RecordBatch], ids: Ids) -> Iterator[pa.RecordBatch]:
    """Yield batches in about random order, holding some of them in memory."""
    heap: list[PrioritizedItem[pa.RecordBatch]] = []
    for batch in batches:
        entry = PrioritizedItem(int(ids.random() * 2 * _RESERVOIR), batch)
        if len(heap) < _RESERVOIR:
            heappush(heap, entry)
        else:
            yield heappushpop(heap, entry).item
    yield from (entry.item for entry in heap)
