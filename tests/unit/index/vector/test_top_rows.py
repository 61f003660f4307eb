"""Laws of collecting nearest rows."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lancelake.index.vector.vectors import DistanceRange, NearestRows

DISTANCES = st.lists(
    st.floats(0, 8, width=16) | st.just(float("nan")) | st.just(float("inf")), max_size=60
)


@given(values=DISTANCES, k=st.integers(1, 8), parts=st.integers(1, 5), low=st.floats(0, 4))
def test_rows_in_parts_give_the_first_of_all(
    values: list[float], k: int, parts: int, low: float
) -> None:
    distances = np.array(values, dtype=np.float32)
    ids = np.arange(len(values), dtype=np.uint64)
    nearest = NearestRows(1, k, DistanceRange(lower=low))
    for part in np.array_split(np.arange(len(values))[::-1], parts):
        nearest.add(0, ids[part], distances[part])
    kept = [(d, i) for i, d in enumerate(distances.tolist()) if d >= low]
    expected = sorted(kept)[:k]
    found = nearest.result(0)
    assert list(zip(found.distances.tolist(), found.ids.tolist(), strict=True)) == expected
