"""Data files of rewritten rows: write settings and row ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.data.write_task import WriteTask
from lancelake.format.fragment import Fragment
from lancelake.format.rowids.sequence import RowIdSequence


def row_files(base: Snapshot) -> WriteTask:
    """Return the write settings for rows of a version."""
    return WriteTask(
        root=base.location,
        schema=base.manifest.schema,
        file_version=base.manifest.data_version,
        casts=True,
        allow_external_blobs=True,
        # The table already has such columns.
        newest_readers_only=True,
    )


def with_row_ids(
    fragments: Sequence[Fragment], row_ids: Sequence[pa.Array]
) -> tuple[Fragment, ...]:
    """Assign row ids to the first rows of fragments written from one stream."""
    parts = [np.asarray(ids, dtype=np.uint64) for ids in row_ids]
    given = np.concatenate(parts) if parts else np.array([], dtype=np.uint64)
    found: list[Fragment] = []
    first = 0
    for fragment in fragments:
        last = first + (fragment.physical_rows or 0)
        ids = given[first:last]
        found.append(
            replace(fragment, row_ids=RowIdSequence.of(ids).encode()) if len(ids) else fragment
        )
        first = last
    return tuple(found)
