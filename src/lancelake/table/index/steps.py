"""Build of a PQ index in steps: rows are encoded, grouped by partition, and become a segment.

Each step may run in another process; the caller moves the rows between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.data.codec.index_file import SegmentFolder
from lancelake.format.ids import Version
from lancelake.format.index_meta import IndexMetadata
from lancelake.index.kind import BuildInput, BuiltSegment
from lancelake.index.vector.coded_rows import (
    RowPartitions,
    coded_batches,
    coded_schema,
    product_codes,
)
from lancelake.index.vector.kind import model_of
from lancelake.index.vector.write import PartitionCodes, write_segment
from lancelake.table.index.build import DEFAULT_RUN, IndexRun, SegmentBuild, build_segment
from lancelake.table.index.request import IndexRequest, chosen_fragments, resolve
from lancelake.table.index.rows import build_input


@names_table
def encoded_rows(
    base: Snapshot, request: IndexRequest, known: RowPartitions | None = None
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Encode the rows of fragments by the model that a request has, without training."""
    target = resolve(base, request)
    fragments = chosen_fragments(base, request.fragment_ids)
    is_stable = base.manifest.has_stable_row_ids
    stored = target.kind.stored_ids(0, has_stable_row_ids=is_stable)
    rows = build_input(base, target, fragments, stored, parameters=request.parameters)
    model, _ = model_of(rows, target.kind.name)
    return coded_schema(product_codes(model)), coded_batches(rows, model, known)


def segment_of(
    base: Snapshot,
    request: IndexRequest,
    partition: Callable[[int], PartitionCodes | None],
    *,
    version: Version,
    run: IndexRun = DEFAULT_RUN,
) -> IndexMetadata:
    """Write a segment of rows that were encoded in a version; nothing is committed."""

    def write(build: SegmentBuild, folder: SegmentFolder) -> BuiltSegment:
        rows = BuildInput(dtype=build.target.dtype, batches=(), parameters=build.parameters)
        model, settings = model_of(rows, build.target.kind.name)
        parts = map(partition, range(len(model.partitions)))
        return write_segment(model, settings, parts, folder)

    entry = build_segment(base, request, replace(run, builder=write))
    # Rows that were updated since must not be found by their old codes.
    return replace(entry, dataset_version=min(version, entry.dataset_version))
