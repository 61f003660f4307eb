"""Statistics of a version: fragments, deleted rows and bytes per field."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.commit.snapshot import Snapshot
from lancelake.data.open_columns import column_sizes
from lancelake.format.ids import FieldId
from lancelake.scan.count import live_rows, physical_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetCounts:
    """Fragments and deleted rows of a version."""

    num_fragments: int
    num_small_files: int
    num_deleted_rows: int


def dataset_counts(snapshot: Snapshot, small_rows: int) -> DatasetCounts:
    """Count fragments, those with fewer than `small_rows` rows, and deleted rows."""
    places = snapshot.files, snapshot.manifest_at
    fragments = snapshot.manifest.fragments
    physical = [physical_rows(*places, f) for f in fragments]
    live = [live_rows(*places, f) for f in fragments]
    return DatasetCounts(
        num_fragments=len(fragments),
        num_small_files=sum(1 for rows in physical if rows < small_rows),
        num_deleted_rows=sum(physical) - sum(live),
    )


def column_bytes(snapshot: Snapshot) -> dict[FieldId, int]:
    """Return the bytes on disk of each field, from the data files."""
    sizes = {field.id: 0 for field in snapshot.manifest.schema.walk()}
    for fragment in snapshot.manifest.fragments:
        for file in fragment.files:
            columns = column_sizes(snapshot.files, file)
            for field_id, index in zip(file.fields, file.column_indices, strict=False):
                if field_id in sizes and index in columns:
                    sizes[field_id] += columns[index]
    return sizes
