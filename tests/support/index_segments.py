"""Segments of indices built from arrays, and their answers as one truth for each row."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lancelake.data.codec.index_file import SegmentFolder
from lancelake.index.kind import (
    ROW_ID,
    VALUE,
    BuildInput,
    BuiltSegment,
    IndexKind,
    Order,
    SegmentFacts,
)
from lancelake.index.row_sets import Answer, RowMask
from lancelake.index.sort import value_sorted
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt

Truth = list[bool | None]

_numbers = itertools.count()


def new_folder(root: Path) -> SegmentFolder:
    """Return a folder that no other segment has."""
    place = FileAt(root=Location.parse(root), path=f"_indices/{next(_numbers)}")
    return SegmentFolder(place=place)


def build_input(
    kind: IndexKind,
    values: pa.Array,
    ids: Sequence[int],
    *,
    batch_rows: int = 1 << 16,
    parameters: dict[str, Any] | None = None,
) -> BuildInput:
    """Return values and row ids in the order that a kind wants."""
    columns = [values, pa.array(ids, pa.uint64())]
    table = pa.Table.from_arrays(columns, names=[VALUE, ROW_ID])
    batches: Any = table.to_batches(max_chunksize=batch_rows)
    if kind.order is Order.VALUE:
        batches = value_sorted(values.type, batches)
    return BuildInput(dtype=values.type, batches=batches, parameters=parameters or {})


def facts_of(built: BuiltSegment, folder: SegmentFolder, dtype: pa.DataType) -> SegmentFacts:
    """Return what the entry of a built segment says."""
    return SegmentFacts(
        folder=folder, dtype=dtype, details=built.details, index_version=built.index_version
    )


def built(
    kind: IndexKind, values: pa.Array, ids: Sequence[int], root: Path, **options: Any
) -> SegmentFacts:
    """Build a segment."""
    folder = new_folder(root)
    return facts_of(
        kind.build(build_input(kind, values, ids, **options), folder), folder, values.type
    )


def truths(answer: Answer, ids: Sequence[int]) -> Truth:
    """Return the truth of each row, of an answer that knows it."""
    sides = []
    for sure, maybe in (
        (answer.surely_true, answer.maybe_true),
        (answer.surely_false, answer.maybe_false),
    ):
        found = [_has(sure, row) for row in ids]
        assert found == [_has(maybe, row) for row in ids], "the answer is not exact"
        sides.append(found)
    return [
        True if is_true else False if is_false else None
        for is_true, is_false in zip(*sides, strict=True)
    ]


def _has(mask: RowMask, row: int) -> bool:
    return (row in mask.ids) != mask.is_inverted


def addresses(count: int, fragment_rows: int = 7) -> list[int]:
    """Return row addresses that spread over fragments."""
    rows = np.arange(count, dtype=np.uint64)
    return [int(r // fragment_rows) << 32 | int(r % fragment_rows) for r in rows]
