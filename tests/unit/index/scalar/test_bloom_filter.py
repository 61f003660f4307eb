"""Bloom filter indices never miss a row, and leave out zones without the value."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.errors import CorruptTableError, InvalidRequestError
from lancelake.expr.condition import Column, Comparison, IsNull, Leaf, Membership, Operator
from lancelake.index.kind import IdKind, SegmentFacts
from lancelake.index.scalar.bloom_filter import BLOOM_FILTER, FILE
from tests.support.index_laws import (
    NAN,
    POOLS,
    Rows,
    address,
    all_ids,
    built,
    drawn_rows,
    ensure_bounds,
    ensure_serves,
    facts_of,
    leaves_of,
    members,
    new_folder,
)

INT = Column(path=("c",), dtype=pa.int64())
NUMBERS = Rows(
    values=pa.array([1, 2, 3, 4, None, 6], pa.int64()),
    ids=np.array([address(0, 3), *(address(1, n) for n in (0, 2, 5, 6, 9))], dtype=np.uint64),
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("blooms")


def equal(value: int) -> Comparison:
    return Comparison(column=INT, operator=Operator.EQUAL, value=pa.scalar(value, pa.int64()))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Rows, list[Leaf], int]:
    dtype = draw(st.sampled_from([t for t in POOLS if BLOOM_FILTER.accepts(t)]))
    conditions = draw(st.lists(leaves_of(dtype), min_size=1, max_size=5))
    return draw(drawn_rows(dtype)), conditions, draw(st.integers(1, 5))


def ensure_all(facts: SegmentFacts, conditions: list[Leaf], rows: Rows) -> None:
    segment = BLOOM_FILTER.open(facts)
    for leaf in conditions:
        answer = segment.answer(leaf)
        if answer is not None:
            ensure_bounds(answer, leaf, rows)


@given(cases())
def test_no_row_is_missed(root: Path, case: tuple[Rows, list[Leaf], int]) -> None:
    rows, conditions, items = case
    ensure_all(built(BLOOM_FILTER, rows, root, number_of_items=items), conditions, rows)


@given(cases(), st.data())
def test_no_row_is_missed_after_a_merge(
    root: Path, case: tuple[Rows, list[Leaf], int], data: st.DataObject
) -> None:
    rows, conditions, items = case
    middle = data.draw(st.integers(0, len(rows.ids)))
    first, second = rows.part(0, middle), rows.part(middle, len(rows.ids))
    old = built(BLOOM_FILTER, first, root, number_of_items=items, probability=0.01)
    folder = new_folder(root)
    merged = BLOOM_FILTER.merge([(old, all_ids(first))], second.input(), folder)
    ensure_all(facts_of(merged, folder, rows.values.type), conditions, rows)


def test_an_index_of_half_of_the_rows_is_found_out(root: Path) -> None:
    segment = BLOOM_FILTER.open(built(BLOOM_FILTER, NUMBERS.part(0, 3), root))
    answer = segment.answer(equal(4))
    assert answer is not None
    with pytest.raises(AssertionError, match="missing"):
        ensure_bounds(answer, equal(4), NUMBERS)


def test_zones_without_the_value_are_left_out(root: Path) -> None:
    segment = BLOOM_FILTER.open(built(BLOOM_FILTER, NUMBERS, root, number_of_items=2))
    for _ in range(2):  # the second time with filters that were kept
        answer = segment.answer(equal(2))
        assert answer is not None
        assert answer.maybe_true.ids.to_array().tolist() == [address(1, n) for n in (0, 1, 2)]


def test_a_list_of_many_values_is_searched_as_one(root: Path) -> None:
    rows = Rows(values=pa.array(range(4000), pa.int64()), ids=np.arange(4000, dtype=np.uint64))
    segment = BLOOM_FILTER.open(built(BLOOM_FILTER, rows, root, number_of_items=100))
    leaf = Membership(column=INT, values=pa.array([*range(150, 250), *range(9000, 9600)]))
    ensure_serves(segment, leaf, rows)
    answer = segment.answer(leaf)
    assert answer is not None and len(answer.maybe_true.ids) < 1000


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_both_zeros_are_found(root: Path, zero: float) -> None:
    dtype = pa.float64()
    rows = Rows(values=pa.array([0.0, -0.0], dtype), ids=np.arange(2, dtype=np.uint64))
    segment = BLOOM_FILTER.open(built(BLOOM_FILTER, rows, root, number_of_items=1))
    value = pa.scalar(zero, dtype)
    ensure_serves(
        segment, Comparison(column=rows.column, operator=Operator.EQUAL, value=value), rows
    )


def test_nan_is_left_to_a_scan(root: Path) -> None:
    rows = Rows(values=pa.array([NAN, 1.0]), ids=np.arange(2, dtype=np.uint64))
    segment = BLOOM_FILTER.open(built(BLOOM_FILTER, rows, root))
    value = pa.scalar(NAN)
    leaf = Comparison(column=rows.column, operator=Operator.EQUAL, value=value)
    assert segment.answer(leaf) is None


def test_orders_are_left_to_a_scan(root: Path) -> None:
    segment = BLOOM_FILTER.open(built(BLOOM_FILTER, NUMBERS, root))
    leaf = Comparison(column=INT, operator=Operator.LESS, value=pa.scalar(3, pa.int64()))
    assert segment.answer(leaf) is None


def test_null_rows_are_known_exactly(root: Path) -> None:
    answer = BLOOM_FILTER.open(built(BLOOM_FILTER, NUMBERS, root)).answer(IsNull(column=INT))
    assert answer is not None and answer.is_exact
    assert members(answer.maybe_true, NUMBERS.ids) == {address(1, 6)}


def test_the_setup_is_shown_and_kept_by_a_merge(root: Path) -> None:
    old = built(BLOOM_FILTER, NUMBERS, root, number_of_items=3, probability=0.25)
    folder = new_folder(root)
    merged = BLOOM_FILTER.merge([(old, None)], NUMBERS.part(0, 0).input(), folder)
    shown = BLOOM_FILTER.open(facts_of(merged, folder, pa.int64())).statistics()
    assert shown == {
        "type": "BloomFilter",
        "num_blocks": 3,
        "number_of_items": 3,
        "probability": 0.25,
    }


def test_zones_are_places_in_every_table() -> None:
    assert BLOOM_FILTER.stored_ids(0, has_stable_row_ids=True) is IdKind.ADDRESS


def test_rows_that_move_need_a_new_index(root: Path) -> None:
    facts = built(BLOOM_FILTER, NUMBERS, root)
    assert BLOOM_FILTER.remap(facts, lambda ids: ids, new_folder(root)) is None


@pytest.mark.parametrize("dtype", [pa.bool_(), pa.float16(), pa.decimal128(4, 1), pa.binary(3)])
def test_values_that_official_releases_do_not_hash_are_not_accepted(dtype: pa.DataType) -> None:
    assert not BLOOM_FILTER.accepts(dtype)


@pytest.mark.parametrize(
    "parameters", [{"probability": 0}, {"probability": 1.5}, {"number_of_items": -1}]
)
def test_wrong_parameters_are_refused(root: Path, parameters: dict[str, object]) -> None:
    with pytest.raises(InvalidRequestError, match=next(iter(parameters))):
        BLOOM_FILTER.build(NUMBERS.input(**parameters), new_folder(root))


def test_a_missing_file_is_named(root: Path) -> None:
    facts = SegmentFacts(folder=new_folder(root), dtype=pa.int64(), details=None, index_version=0)
    with pytest.raises(CorruptTableError, match=FILE):
        BLOOM_FILTER.open(facts).answer(equal(1))


def test_a_filter_that_is_not_made_of_blocks_is_named(root: Path) -> None:
    folder = new_folder(root)
    with_filter = pa.schema([("bloom_filter_data", pa.binary())])
    writer = folder.create(FILE, with_filter)
    writer.write(pa.RecordBatch.from_pylist([{"bloom_filter_data": b"abc"}], schema=with_filter))
    writer.finish()
    facts = SegmentFacts(folder=folder, dtype=pa.int64(), details=None, index_version=0)
    with pytest.raises(CorruptTableError, match=rf"{FILE} has filters of \[3\] bytes"):
        BLOOM_FILTER.open(facts).answer(equal(1))
