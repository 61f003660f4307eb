"""Inner dataset: the object behind `ds._ds` of pylance, whose methods some programs call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa


class InnerDataset:
    """Members of a dataset, and those that pylance has on the inner object alone or otherwise."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def version(self) -> int:
        """Return the version of the dataset."""
        return int(self._dataset.version)

    def latest_version(self) -> int:
        """Return the latest version of the table."""
        return int(self._dataset.latest_version)

    def take_scan(
        self,
        row_slices: Iterable[tuple[int, int]],
        columns: Sequence[str] | None = None,
        batch_readahead: int = 10,
    ) -> pa.RecordBatchReader:
        """Read ranges of positions, each from its start up to its stop, as one batch each.

        Args:
            row_slices: The ranges, which are asked for as batches are read.
            columns: Names of columns; by default all.
            batch_readahead: Number of batches to prefetch, which has no effect here.

        Returns:
            The batches, in the order of the ranges.
        """
        names = None if columns is None else list(columns)
        schema = self._dataset.scanner(names).projected_schema

        def batches() -> Iterator[pa.RecordBatch]:
            for start, stop in row_slices:
                rows = self._dataset.take(range(start, stop), names).combine_chunks()
                yield from rows.to_batches() or [pa.RecordBatch.from_pylist([], schema)]

        return pa.RecordBatchReader.from_batches(schema, batches())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._dataset, name)
