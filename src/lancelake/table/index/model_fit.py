"""Fit of the model of a trained index to new rows: recall on them and on the old ones."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.index.kind import SegmentFacts, TrainedKind
from lancelake.scan.count import live_rows
from lancelake.scan.request import ScanRequest
from lancelake.scan.take import take
from lancelake.table.index.request import IndexTarget

_SAMPLE = 4096
# A fall of the estimated recall by so much costs more than to train again.
_FALL = 0.1


def has_lost_recall(
    base: Snapshot, target: IndexTarget, model: SegmentFacts, old: BitMap, new: BitMap
) -> bool:
    """Whether a model finds far fewer of the neighbours of new rows than of those it indexes.

    Both are estimated on samples of rows.
    """
    kind = target.kind
    if not isinstance(kind, TrainedKind) or not old or not new:
        return False
    now = kind.estimated_recall(model, _sample(base, target, new))
    if now is None:
        return False
    before = kind.estimated_recall(model, _sample(base, target, old))
    return before is not None and now < before - _FALL


def _sample(base: Snapshot, target: IndexTarget, fragments: BitMap) -> pa.Array:
    """Return the values of evenly spaced rows of fragments."""
    numbers: list[np.ndarray] = []
    start = 0
    for fragment in base.manifest.fragments:
        count = live_rows(base.files, base.manifest_at, fragment)
        if fragment.id in fragments:
            numbers.append(np.arange(start, start + count, dtype=np.uint64))
        start += count
    every = np.concatenate(numbers) if numbers else np.zeros(0, dtype=np.uint64)
    chosen = every[:: max(1, len(every) // _SAMPLE)][:_SAMPLE]
    found = take(base, chosen, ScanRequest(columns=(target.path,))).column(0).combine_chunks()
    values = pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found
    while pa.types.is_struct(values.type):
        # Of a nested column only the path to it is read.
        values = pc.struct_field(values, [0])
    return values.storage if isinstance(values, pa.ExtensionArray) else values
