"""Z-order clusters rows that are close in all columns."""

from __future__ import annotations

import pickle
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from lancelake.maintenance.compact.row_order import ZCurve

SIDE = 64


def square() -> list[pa.Array]:
    return [pa.array(np.repeat(np.arange(SIDE), SIDE)), pa.array(np.tile(np.arange(SIDE), SIDE))]


def test_a_run_of_rows_is_narrow_in_every_column() -> None:
    columns = square()
    order = np.argsort(ZCurve.through(columns).positions(columns).to_numpy())
    for part in np.split(order, 16):
        for column in columns:
            values = column.to_numpy()[part]
            assert values.max() - values.min() < SIDE / 2


def test_one_column_is_sorted() -> None:
    values = pa.array([3, 1, 4, 2])
    places = ZCurve.through([values]).positions([values]).to_numpy()
    assert np.argsort(places).tolist() == [1, 3, 0, 2]


def test_a_column_of_few_values_counts_as_much_as_one_of_many() -> None:
    columns = [pa.array(np.arange(1000)), pa.array(np.arange(1000) % 2)]
    places = ZCurve.through(columns).positions(columns).to_numpy()
    # The second column decides between the halves of each half of the first.
    second = columns[1].to_numpy()[np.argsort(places)]
    assert second[:250].sum() == 0
    assert second[250:500].sum() == 250


def test_values_that_were_not_seen_are_between_those_that_were() -> None:
    curve = ZCurve.through([pa.array([10, 20, 30])])
    places = curve.positions([pa.array([5, 10, 15, 25, 40])]).to_pylist()
    assert places == sorted(places)
    assert len(set(places)) == 3


def test_nan_is_with_the_largest_and_null_with_the_smallest() -> None:
    values = pa.array([1.0, float("nan"), None, 2.0])
    small, nan, null, large = ZCurve.through([values]).positions([values]).to_pylist()
    assert (null, nan) == (small, large)


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", "b", "c", None]),
        pa.array([False, True]),
        pa.array([Decimal("1.5"), Decimal("2.5")]),
        pa.array([1, 2], pa.timestamp("ns")),
        pa.array([b"a", b"b"], pa.large_binary()),
    ],
    ids=lambda values: str(values.type),
)
def test_values_of_a_type_have_places_in_order(values: pa.Array) -> None:
    places = ZCurve.through([values]).positions([values.drop_null()]).to_pylist()
    assert places == sorted(set(places))


def test_many_columns_share_the_bits() -> None:
    columns = [pa.array(range(100)) for _ in range(9)]
    places = ZCurve.through(columns).positions(columns).to_pylist()
    assert places == sorted(places)


def test_no_values_are_one_cell() -> None:
    curve = ZCurve.through([pa.array([], pa.int64())])
    assert curve.positions([pa.array([5, 6])]).to_pylist() == [0, 0]


def test_a_curve_travels() -> None:
    curve = ZCurve.through(square())
    found = pickle.loads(pickle.dumps(curve))
    assert found.positions(square()) == curve.positions(square())
