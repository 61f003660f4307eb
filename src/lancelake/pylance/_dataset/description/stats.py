"""Statistics of a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypedDict

from lancelake.commit.snapshot import Snapshot
from lancelake.pylance._dataset.indices.index_statistics import index_statistics
from lancelake.pylance._values.reprs import version_text
from lancelake.table.statistics import column_bytes, dataset_counts


@dataclass
class FieldStatistics:
    """Size of one field."""

    id: int
    bytes_on_disk: int


@dataclass
class DataStatistics:
    """Sizes of all fields."""

    fields: list[FieldStatistics] = field(default_factory=list)


class DatasetStats(TypedDict):
    """Counts of a version."""

    num_deleted_rows: int
    num_fragments: int
    num_small_files: int


class LanceStats:
    """Statistics of one version."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def __repr__(self) -> str:
        return version_text(self, self._snapshot)

    def dataset_stats(self, max_rows_per_group: int = 1024) -> DatasetStats:
        """Count fragments, small fragments, and deleted rows."""
        counts = dataset_counts(self._snapshot, max_rows_per_group)
        return DatasetStats(
            num_deleted_rows=counts.num_deleted_rows,
            num_fragments=counts.num_fragments,
            num_small_files=counts.num_small_files,
        )

    def index_stats(self, index_name: str) -> dict[str, Any]:
        """Return the coverage of an index."""
        return index_statistics(self._snapshot, index_name)

    def data_stats(self) -> DataStatistics:
        """Return the size of each field."""
        sizes = column_bytes(self._snapshot)
        return DataStatistics(
            [FieldStatistics(id=field_id, bytes_on_disk=size) for field_id, size in sizes.items()]
        )
