"""Zone maps never miss a row, whatever is in a zone."""

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
from lancelake.index.row_sets import RowMask
from lancelake.index.scalar.zone_map import FILE, ZONE_MAP
from tests.support.index_laws import (
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
    return tmp_path_factory.mktemp("zones")


def equal(value: int) -> Comparison:
    return Comparison(column=INT, operator=Operator.EQUAL, value=pa.scalar(value, pa.int64()))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Rows, list[Leaf], int]:
    dtype = draw(st.sampled_from(list(POOLS)))
    conditions = draw(st.lists(leaves_of(dtype), min_size=1, max_size=5))
    return draw(drawn_rows(dtype)), conditions, draw(st.integers(1, 5))


@given(cases())
def test_no_row_is_missed(root: Path, case: tuple[Rows, list[Leaf], int]) -> None:
    rows, conditions, rows_per_zone = case
    segment = ZONE_MAP.open(built(ZONE_MAP, rows, root, rows_per_zone=rows_per_zone))
    for leaf in conditions:
        ensure_serves(segment, leaf, rows)


@given(cases(), st.data())
def test_no_row_is_missed_after_a_merge(
    root: Path, case: tuple[Rows, list[Leaf], int], data: st.DataObject
) -> None:
    rows, conditions, rows_per_zone = case
    middle = data.draw(st.integers(0, len(rows.ids)))
    first, second = rows.part(0, middle), rows.part(middle, len(rows.ids))
    old = built(ZONE_MAP, first, root, rows_per_zone=rows_per_zone)
    folder = new_folder(root)
    merged = ZONE_MAP.merge([(old, all_ids(first))], second.input(), folder)
    segment = ZONE_MAP.open(facts_of(merged, folder, rows.values.type))
    assert segment.statistics()["rows_per_zone"] == rows_per_zone
    for leaf in conditions:
        ensure_serves(segment, leaf, rows)


def test_an_index_of_half_of_the_rows_is_found_out(root: Path) -> None:
    segment = ZONE_MAP.open(built(ZONE_MAP, NUMBERS.part(0, 3), root))
    answer = segment.answer(equal(4))
    assert answer is not None
    with pytest.raises(AssertionError, match="missing"):
        ensure_bounds(answer, equal(4), NUMBERS)


def test_zones_without_the_value_are_left_out(root: Path) -> None:
    segment = ZONE_MAP.open(built(ZONE_MAP, NUMBERS, root, rows_per_zone=2))
    answer = segment.answer(equal(2))
    assert answer is not None
    # The zone spans row 1, which was deleted before the index was built.
    assert answer.maybe_true == RowMask(answer.maybe_true.ids)
    assert answer.maybe_true.ids.to_array().tolist() == [address(1, n) for n in (0, 1, 2)]


def test_a_zone_ends_with_its_fragment(root: Path) -> None:
    segment = ZONE_MAP.open(built(ZONE_MAP, NUMBERS, root, rows_per_zone=4))
    zones = pa.Table.from_batches(segment.entries())
    shown = zones.select(["fragment_id", "zone_start", "zone_length"]).to_pylist()
    assert [tuple(zone.values()) for zone in shown] == [(0, 3, 1), (1, 0, 7), (1, 9, 1)]


def test_null_rows_are_known_exactly(root: Path) -> None:
    answer = ZONE_MAP.open(built(ZONE_MAP, NUMBERS, root)).answer(IsNull(column=INT))
    assert answer is not None and answer.is_exact
    assert members(answer.maybe_true, NUMBERS.ids) == {address(1, 6)}


def test_a_long_list_leaves_zones_out(root: Path) -> None:
    rows = Rows(values=pa.array(range(0, 1000, 2), pa.int64()), ids=np.arange(500, dtype=np.uint64))
    segment = ZONE_MAP.open(built(ZONE_MAP, rows, root, rows_per_zone=10))
    values = pa.array([*range(101, 119), *range(300, 340), 5000], pa.int64())
    leaf = Membership(column=INT, values=values)
    answer = segment.answer(leaf)
    assert answer is not None
    ensure_bounds(answer, leaf, rows)
    assert len(answer.maybe_true.ids) == 30


def test_fragments_that_are_not_kept_lose_their_zones(root: Path) -> None:
    old = built(ZONE_MAP, NUMBERS, root)
    kept = all_ids(NUMBERS).only([1])
    folder = new_folder(root)
    nothing = Rows(values=pa.array([], pa.int64()), ids=np.array([], dtype=np.uint64))
    merged = ZONE_MAP.merge([(old, kept)], nothing.input(), folder)
    segment = ZONE_MAP.open(facts_of(merged, folder, pa.int64()))
    assert pa.Table.from_batches(segment.entries())["fragment_id"].to_pylist() == [1]


def test_zones_are_places_in_every_table() -> None:
    assert ZONE_MAP.stored_ids(0, has_stable_row_ids=True) is IdKind.ADDRESS


def test_rows_that_move_need_a_new_index(root: Path) -> None:
    facts = built(ZONE_MAP, NUMBERS, root)
    assert ZONE_MAP.remap(facts, lambda ids: ids, new_folder(root)) is None


@pytest.mark.parametrize("dtype", [pa.list_(pa.int8()), pa.struct([]), pa.null()])
def test_values_without_an_order_are_not_accepted(dtype: pa.DataType) -> None:
    assert not ZONE_MAP.accepts(dtype)


@pytest.mark.parametrize(
    "parameters", [{"rows_per_zone": 0}, {"rows_per_zone": "many"}, {"zone_rows": 5}]
)
def test_wrong_parameters_are_refused(root: Path, parameters: dict[str, object]) -> None:
    with pytest.raises(InvalidRequestError, match="rows_per_zone"):
        ZONE_MAP.build(NUMBERS.input(**parameters), new_folder(root))


def test_a_missing_file_is_named(root: Path) -> None:
    facts = SegmentFacts(folder=new_folder(root), dtype=pa.int64(), details=None, index_version=0)
    with pytest.raises(CorruptTableError, match=FILE):
        ZONE_MAP.open(facts).answer(equal(1))


def test_a_damaged_file_is_named(root: Path) -> None:
    facts = built(ZONE_MAP, NUMBERS, root)
    path = Path(facts.folder.file(FILE).uri)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(CorruptTableError, match=FILE):
        ZONE_MAP.open(facts).answer(equal(1))


def test_a_file_without_a_column_is_named(root: Path) -> None:
    folder = new_folder(root)
    schema = pa.schema([("min", pa.int64()), ("max", pa.int64())])
    folder.create(FILE, schema).finish()
    facts = SegmentFacts(folder=folder, dtype=pa.int64(), details=None, index_version=0)
    with pytest.raises(CorruptTableError, match=f"{FILE} has no column null_count"):
        ZONE_MAP.open(facts).answer(equal(1))
