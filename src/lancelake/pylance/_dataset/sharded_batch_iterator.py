"""`ShardedBatchIterator`: the batches of one of several workers, as in pylance."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa

from lancelake.core.table import Table
from lancelake.core.table_place import TablePlace
from lancelake.core.values.metadata import Snapshot
from lancelake.core.values.reads import ScanRequest
from lancelake.pylance._dataset.arguments import Columns, request_columns
from lancelake.pylance._dataset.scanner import LanceScanner
from lancelake.pylance._dataset.state import Session, locate
from lancelake.pylance._values.opened import OpenedDataset

__all__ = ["ShardedBatchIterator"]

_BATCH_ROWS = 10 * 1024


class ShardedBatchIterator:
    """Batches of every `world_size`-th fragment, or of every `world_size`-th range of rows.

    `lancelake.pylance.sampler` has the samplers that replace it.
    """

    def __init__(
        self,
        data: str | Path | OpenedDataset,
        rank: int,
        world_size: int,
        *,
        columns: Columns = None,
        batch_size: int = _BATCH_ROWS,
        granularity: str = "fragment",
        batch_readahead: int = 8,
        with_row_id: bool = False,
    ) -> None:
        warnings.warn("ShardedBatchIterator is deprecated, use a Sampler instead", stacklevel=2)
        self._snapshot = _snapshot(data)
        self._rank = rank
        self._world_size = world_size
        self._columns = request_columns(columns)
        self._batch_size = batch_size
        self._granularity = granularity
        self._batch_readahead = batch_readahead
        self._with_row_id = with_row_id

    @staticmethod
    def from_torch(data: str | Path | OpenedDataset, **options: Any) -> ShardedBatchIterator:
        """Take the rank and the number of workers from `torch.distributed`."""
        workers: Any = import_module("torch.distributed")  # few programs need it
        rank, size = workers.get_rank(), workers.get_world_size()
        return ShardedBatchIterator(data, rank, size, **options)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches."""
        if self._granularity == "fragment":
            return self._of_fragments()
        if self._granularity == "batch":
            return self._of_ranges()
        raise ValueError(f"Unrecognized granularity: {self._granularity}")

    def _of_fragments(self) -> Iterator[pa.RecordBatch]:
        for fragment in self._snapshot.manifest.fragments[self._rank :: self._world_size]:
            request = ScanRequest(
                columns=self._columns,
                batch_size=self._batch_size,
                batch_readahead=self._batch_readahead,
                with_row_id=self._with_row_id,
                fragment_ids=(fragment.id,),
            )
            yield from LanceScanner(self._snapshot, request).to_batches()

    def _of_ranges(self) -> Iterator[pa.RecordBatch]:
        if self._with_row_id:
            raise NotImplementedError("with_row_id is not supported for batches of rows")
        step = self._batch_size * self._world_size
        for start in range(self._rank * self._batch_size, Table(self._snapshot).count_rows(), step):
            request = ScanRequest(columns=self._columns, offset=start, limit=self._batch_size)
            rows = LanceScanner(self._snapshot, request).to_table()
            yield from rows.combine_chunks().to_batches()


def _snapshot(data: str | Path | OpenedDataset) -> Snapshot:
    if isinstance(data, str | Path):
        return TablePlace(locate(data, None, session=Session())).open().snapshot
    return data._snapshot
