"""`VectorIndexReader`: the rows of the partitions of a vector index, as in pylance."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lancelake.index.stored_segment import StoredIndices
from lancelake.index.vector.segment import VectorSegment
from lancelake.pylance._values.reprs import call_text


class VectorIndexReader:
    """Reads the partitions of a vector index."""

    def __init__(self, dataset: Any, index_name: str) -> None:
        self.dataset = dataset
        self.index_name = index_name
        self.stats = dataset.stats.index_stats(index_name)
        stored = StoredIndices(dataset._snapshot).segments(index_name)
        opened = [segment.open() for segment in stored]
        self._segments = [segment for segment in opened if isinstance(segment, VectorSegment)]
        if not self._segments:
            msg = f"Index {index_name} is not vector index"
            raise ValueError(msg)

    def __repr__(self) -> str:
        return call_text(self, self.dataset, self.index_name)

    def num_partitions(self) -> int:
        """Return the number of partitions."""
        return len(self._segments[0].model.partitions)

    def read_partition(self, partition_id: int, *, with_vector: bool = False) -> pa.Table:
        """Return the row ids of a partition, with the codes of the vectors if asked for."""
        count = self.num_partitions()
        if not 0 <= partition_id < count:
            expected = f"expected 0 <= partition_id < {count}"
            raise IndexError(f"Partition id {partition_id} is out of range, {expected}")
        parts = [
            s.files.partition_rows(partition_id, with_codes=with_vector) for s in self._segments
        ]
        return pa.concat_tables(parts)
