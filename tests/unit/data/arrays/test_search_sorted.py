"""Values are found in sorted arrays, with pyarrow's function and without it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.data.arrays.batches import search_sorted


@pytest.fixture(params=["any release of pyarrow", "a release without the function"])
def release(request: pytest.FixtureRequest) -> None:
    if request.param == "a release without the function" and hasattr(pc, "search_sorted"):
        patch = pytest.MonkeyPatch()
        patch.delattr(pc, "search_sorted")
        request.addfinalizer(patch.undo)


NUMBERS = st.lists(st.integers(-3, 3), max_size=9)


@given(ordered=NUMBERS.map(sorted), values=st.lists(st.none() | st.integers(-4, 4), max_size=9))
@pytest.mark.usefixtures("release")
@pytest.mark.parametrize("kind", [pa.int32(), pa.float64(), pa.string()])
def test_places_count_the_values_before(
    kind: pa.DataType, ordered: list[int], values: list[int | None]
) -> None:
    def words(items: list[int | None]) -> pa.Array:
        if kind == pa.string():
            return pa.array([None if i is None else chr(ord("k") + i) for i in items], kind)
        return pa.array(items, kind)

    left = [None if v is None else sum(o < v for o in ordered) for v in values]
    right = [None if v is None else sum(o <= v for o in ordered) for v in values]
    assert search_sorted(words([*ordered]), words(values), side="left").to_pylist() == left
    assert search_sorted(words([*ordered]), words(values), side="right").to_pylist() == right
