"""Ranges of a BTREE that is built on executors."""

from __future__ import annotations

import uuid
from bisect import bisect_right

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

import lancelake.pylance as lance
from lancelake.index.scalar.btree.kind import BTREE
from lancelake.spark.jobs.index_build import RangePlan, Ranges
from lancelake.table.index.build import SegmentBuild
from lancelake.table.index.request import column_target

KEYS = st.one_of(
    st.tuples(st.just(pa.int64()), st.lists(st.none() | st.integers(-5, 5), max_size=50)),
    st.tuples(st.just(pa.binary()), st.lists(st.none() | st.binary(max_size=2), max_size=50)),
)


@given(KEYS, st.integers(1, 6))
def test_keys_between_two_bounds_are_in_one_range(
    given_keys: tuple[pa.DataType, list[object]], count: int
) -> None:
    dtype, keys = given_keys
    array = pa.array(keys, dtype)
    ranges = Ranges.of(array, count)
    bounds = ranges.bounds.to_pylist()
    assert bounds == sorted(set(bounds)) and len(bounds) < max(2, count)
    order, numbers = ranges.sort(array)
    ordered = array.take(order).to_pylist()
    expected = [0 if key is None else bisect_right(bounds, key) for key in ordered]
    assert numbers.tolist() == expected
    assert sorted(order.to_pylist()) == list(range(len(keys)))


@pytest.fixture
def build(tmp_table: str) -> SegmentBuild:
    """Return a segment of a small table to be built."""
    base = lance.write_dataset(pa.table({"n": [3, 1, 2]}), tmp_table)._snapshot
    return SegmentBuild(
        base=base, target=column_target(base, "n", BTREE), fragments=BitMap([0]), parameters={}
    )


def test_a_plan_is_found_until_an_attempt_has_completed_it(build: SegmentBuild) -> None:
    assert RangePlan.resume(build) is None
    ranges = Ranges(bounds=pa.array([2], pa.int64()))
    mine = RangePlan.begin(build, uuid.uuid4(), ranges)
    theirs = RangePlan.resume(build)
    assert theirs == mine
    assert mine.finish()
    assert RangePlan.resume(build) is None
    assert theirs is not None and not theirs.finish()


def test_a_plan_whose_attempt_died_while_completing_it_is_not_found(build: SegmentBuild) -> None:
    ranges = Ranges(bounds=pa.array([2], pa.int64()))
    plan = RangePlan.begin(build, uuid.uuid4(), ranges)
    assert plan.segment.claim()
    assert RangePlan.resume(build) is None


def test_builds_with_other_parameters_have_other_plans(build: SegmentBuild) -> None:
    RangePlan.begin(build, uuid.uuid4(), Ranges(bounds=pa.array([2], pa.int64())))
    other = SegmentBuild(
        base=build.base, target=build.target, fragments=build.fragments, parameters={"zone_size": 9}
    )
    assert RangePlan.resume(other) is None
