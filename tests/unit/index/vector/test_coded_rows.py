"""Coded rows are returned by partition, in the order in which they were added."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lancelake.index.vector.coded_rows import GroupedRows, grouped_rows

COUNT = 4
NUMBERS = st.lists(st.integers(0, COUNT - 1), max_size=20)


def add(groups: GroupedRows, numbers: list[int], start: int = 0) -> None:
    ids = np.arange(start, start + len(numbers), dtype=np.uint64)
    codes = np.stack([ids, ids + 1], axis=1).astype(np.uint8)
    groups.add(np.array(numbers, dtype=np.int64), ids, codes)


@given(first=NUMBERS, second=NUMBERS)
def test_grouped_rows_are_those_of_each_partition(first: list[int], second: list[int]) -> None:
    whole = first + second
    with grouped_rows(COUNT) as groups:
        add(groups, first)
        add(groups, second, len(first))
        groups.finish()
        for number in range(COUNT):
            part = groups.partition(number)
            rows = [row for row, chosen in enumerate(whole) if chosen == number]
            assert (part is None) == (not rows)
            if part is not None:
                assert part[0].tolist() == rows
                assert part[1].tolist() == [[row, row + 1] for row in rows]
