"""The fragments and rows that a plan reads."""

from __future__ import annotations

import pickle

import pytest

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError
from lancelake.format.ids import FragmentId
from lancelake.scan.plan import ScanPlan
from lancelake.scan.planner import plan
from lancelake.scan.request import Ordering, ScanRequest

# Live rows of the fragments of the table: 7, 8, 7, 4, 1.


def fragments(scan: ScanPlan) -> list[int]:
    return [task.fragment.id for task in scan.tasks]


@pytest.mark.parametrize(
    ("limit", "offset", "read", "skip"),
    [
        (None, None, [0, 1, 2, 3, 4], 0),
        (3, None, [0], 0),
        (7, None, [0], 0),
        (8, None, [0, 1], 0),
        (1000, None, [0, 1, 2, 3, 4], 0),
        (0, None, [], 0),
        (None, 7, [1, 2, 3, 4], 0),
        (None, 9, [1, 2, 3, 4], 2),
        (5, 9, [1], 2),
        (7, 9, [1, 2], 2),
        (1, 26, [4], 0),
        (None, 27, [], 0),
        (1, 1000, [], 973),
    ],
)
def test_only_fragments_with_rows_of_the_result_are_read(
    source: Snapshot, limit: int | None, offset: int | None, read: list[int], skip: int
) -> None:
    scan = plan(source, ScanRequest(limit=limit, offset=offset))
    assert (fragments(scan), scan.skip) == (read, skip)


@pytest.mark.parametrize(
    "request_",
    [
        ScanRequest(limit=1, filter="a = 1"),
        ScanRequest(limit=1, order_by=(Ordering(column="a"),)),
        ScanRequest(limit=1, include_deleted_rows=True, with_row_id=True),
    ],
    ids=["filter", "order", "deleted rows"],
)
def test_every_fragment_is_read_when_counts_are_absent(
    source: Snapshot, request_: ScanRequest
) -> None:
    assert fragments(plan(source, request_)) == [0, 1, 2, 3, 4]


def test_named_fragments_are_read_in_the_order_named(source: Snapshot) -> None:
    ids = (FragmentId(3), FragmentId(0))
    assert fragments(plan(source, ScanRequest(fragment_ids=ids))) == [3, 0]


def test_unknown_fragment_is_refused(source: Snapshot) -> None:
    with pytest.raises(InvalidRequestError, match="fragment 99"):
        plan(source, ScanRequest(fragment_ids=(FragmentId(99),)))


def test_unknown_sort_key_is_refused(source: Snapshot) -> None:
    with pytest.raises(InvalidRequestError, match="nosuch"):
        plan(source, ScanRequest(order_by=(Ordering(column="nosuch"),)))


def test_schema_shows_the_columns_asked_for_and_no_sort_key(source: Snapshot) -> None:
    scan = plan(source, ScanRequest(columns=("n",), order_by=(Ordering(column="a"),)))
    assert scan.schema.names == ["n"]
    assert scan.spec.output_schema.names == ["n", "a"]


def test_sort_key_named_twice_is_read_once(source: Snapshot) -> None:
    keys = (Ordering(column="a"), Ordering(column="a", ascending=False))
    scan = plan(source, ScanRequest(columns=("n",), order_by=keys))
    assert scan.spec.output_schema.names == ["n", "a"]


def test_plan_is_a_value(source: Snapshot) -> None:
    request = ScanRequest(columns=("key", "st.x"), filter="a = 1", limit=3)
    scan = plan(source, request)
    assert scan == plan(source, request)
    assert pickle.loads(pickle.dumps(scan)) == scan
