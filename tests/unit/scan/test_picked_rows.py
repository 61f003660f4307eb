"""Picked rows are the ones asked for, few or many."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from lancelake.scan.task_rows import at_places, kept_from, mask_of, mask_rows, offsets_of

BATCH = pa.record_batch({"a": list("abcdef")})


@pytest.mark.parametrize("places", [[], [2], [0, 1, 3, 5], [0, 1, 2, 3, 4, 5]], ids=len)
def test_places_and_masks_pick_the_same_rows(places: list[int]) -> None:
    expected = ["abcdef"[place] for place in places]
    offsets = np.array(places, dtype=np.uint64)
    assert at_places(BATCH, offsets)["a"].to_pylist() == expected
    assert mask_rows(BATCH, mask_of(offsets, 0, 6))["a"].to_pylist() == expected


def test_offsets_count_from_the_start_of_the_fragment() -> None:
    offsets = offsets_of(BitMap([11, 14]))
    assert offsets.tolist() == [11, 14]
    assert kept_from(10, mask_of(offsets, 10, 16)).tolist() == [11, 14]
