"""Rows are grouped by partition alike, in memory and in files."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.index.vector import coded_rows as module
from lancelake.index.vector.coded_rows import grouped_rows

PARTS = st.lists(st.lists(st.integers(0, 3), max_size=6), max_size=6)


@given(parts=PARTS, spills=st.booleans())
def test_each_partition_has_its_rows_in_order(parts: list[list[int]], spills: bool) -> None:
    with pytest.MonkeyPatch.context() as patch, grouped_rows(4) as groups:
        patch.setattr(module, "_MEMORY_BYTES", 1 if spills else 1 << 30)
        expected: dict[int, list[int]] = {}
        count = 0
        for numbers in parts:
            ids = np.arange(count, count + len(numbers), dtype=np.uint64)
            count += len(numbers)
            for number, row in zip(numbers, ids.tolist(), strict=True):
                expected.setdefault(number, []).append(row)
            codes = np.stack([ids, ids], axis=1).astype(np.uint8)
            groups.add(np.array(numbers, dtype=np.int64), ids, codes)
        groups.finish()
        for number in range(4):
            found = groups.partition(number)
            rows = [] if found is None else found[0].tolist()
            assert rows == expected.get(number, [])
            assert found is None or found[1][:, 0].tolist() == rows
