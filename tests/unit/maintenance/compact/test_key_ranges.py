"""Key ranges are disjoint, complete and ordered."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.maintenance.compact.row_order import SortRange, named, ranges
from lancelake.scan.request import Ordering
from lancelake.scan.stream import sort_batches

NAMES = ["a", "b"]
NUMBERS = st.lists(
    st.tuples(
        st.none() | st.integers(-3, 3), st.none() | st.sampled_from([0.5, 1.5, float("nan")])
    ),
    min_size=1,
    max_size=40,
)
DIRECTIONS = st.tuples(
    *(
        st.builds(
            Ordering, column=st.just(name), ascending=st.booleans(), nulls_first=st.booleans()
        )
        for name in NAMES
    )
)


def columns(rows: list[tuple[int | None, float | None]]) -> list[pa.Array]:
    return [pa.array([r[0] for r in rows], pa.int64()), pa.array([r[1] for r in rows])]


def in_order(keys: list[pa.Array], directions: tuple[Ordering, ...]) -> list[str]:
    batch = pa.RecordBatch.from_arrays(keys, names=NAMES)
    order = named(directions, NAMES)
    parts = sort_batches(batch.schema, iter([batch]), order, batch_rows=100)
    return [repr(row) for part in parts for row in part.to_pylist()]


@given(rows=NUMBERS, directions=DIRECTIONS, count=st.integers(1, 5))
def test_ranges_put_behind_each_other_are_the_whole_order(
    rows: list[tuple[int | None, float | None]], directions: tuple[Ordering, ...], count: int
) -> None:
    keys = columns([(a, float("nan") if b is None and a == 3 else b) for a, b in rows])
    keys[1] = keys[1].cast(pa.float64())
    found: list[str] = []
    cut = ranges(keys, directions, count)
    for part in cut:
        mask = pa.array(part.holds(keys, directions))
        found += in_order([key.filter(mask) for key in keys], directions)
    assert found == in_order(keys, directions)
    assert len(cut) <= count


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", "b", None, "c"]),
        pa.array([b"a", b"b", None, b"c"]),
        pa.array([True, False, None]),
        pa.array([datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3)]),
        pa.array([Decimal("1.5"), Decimal("-2.5"), None]),
        pa.array([1, 2, None], pa.date32()),
    ],
    ids=lambda values: str(values.type),
)
def test_values_of_a_type_fall_into_one_range_each(values: pa.Array) -> None:
    directions = (Ordering(column="a"),)
    cut = ranges([values], directions, 3)
    held = [part.holds([values], directions) for part in cut]
    assert len(cut) > 1
    assert np.sum(held, axis=0).tolist() == [1] * len(values)


def test_ranges_hold_about_as_many_rows() -> None:
    keys = [pa.array(np.random.default_rng(1).random(10_000))]
    directions = (Ordering(column="a"),)
    sizes = [part.holds(keys, directions).sum() for part in ranges(keys, directions, 4)]
    assert len(sizes) == 4
    assert max(sizes) - min(sizes) <= 4


def test_one_value_is_in_one_range() -> None:
    keys = [pa.array([7] * 100)]
    directions = (Ordering(column="a"),)
    sizes = [int(part.holds(keys, directions).sum()) for part in ranges(keys, directions, 4)]
    assert sorted(sizes, reverse=True)[0] == 100


def test_no_rows_are_one_range() -> None:
    assert ranges([pa.array([], pa.int64())], (Ordering(column="a"),), 4) == (SortRange(),)


def test_a_range_travels() -> None:
    found = SortRange(lower=(pa.scalar(1), pa.scalar(None, pa.string())))
    assert pickle.loads(pickle.dumps(found)) == found
