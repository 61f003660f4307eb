"""Laws of every index kind: its answers bound the truth of a condition."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from lancelake.data.codec.index_file import SegmentFolder
from lancelake.expr.condition import (
    Column,
    Comparison,
    IsNull,
    Leaf,
    Membership,
    Operator,
    TextMatch,
    TextTest,
    Truth,
)
from lancelake.expr.evaluate import evaluate
from lancelake.index.kind import (
    ROW_ID,
    VALUE,
    BuildInput,
    BuiltSegment,
    IndexKind,
    OpenSegment,
    SegmentFacts,
)
from lancelake.index.row_sets import Answer, RowIds, RowMask
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt

_numbers = itertools.count()
NAN = float("nan")
NEGATIVE_NAN = float(np.array([0xFFF8000000000000], dtype=np.uint64).view(np.float64)[0])

POOLS: Mapping[pa.DataType, Sequence[Any]] = {
    pa.int8(): [-128, -1, 0, 1, 127],
    pa.int64(): [-(1 << 63), -1, 0, 1, 5, (1 << 63) - 1],
    pa.uint64(): [0, 1, 1 << 63, (1 << 64) - 1],
    pa.float32(): [-1.5, -0.0, 0.0, 1.0, 2.5, float("inf"), float("-inf"), NAN, NEGATIVE_NAN],
    pa.float64(): [-1.5, -0.0, 0.0, 1.0, 2.5, float("inf"), float("-inf"), NAN, NEGATIVE_NAN],
    pa.bool_(): [False, True],
    pa.string(): ["", "a", "ab", "abc", "b", "ä", "\U0010ffff", "\U0010ffffa"],
    pa.large_string(): ["", "a", "ab", "b"],
    pa.binary(): [b"", b"\x00", b"a", b"ab", b"\xff", b"\xff\xff"],
    pa.date32(): [-1, 0, 1, 20_000],
    pa.timestamp("ns", "UTC"): [-1, 0, 1, 1_700_000_000_000_000_001],
    pa.decimal128(10, 2): [Decimal("-2.50"), Decimal("0.00"), Decimal("1.25")],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Values of a column, and what is stored for each row."""

    values: pa.Array
    ids: np.ndarray

    @property
    def column(self) -> Column:
        return Column(path=("c",), dtype=self.values.type)

    def batches(self, size: int = 3) -> Iterator[pa.RecordBatch]:
        ids = pa.array(self.ids, pa.uint64())
        whole = pa.RecordBatch.from_arrays([self.values, ids], names=[VALUE, ROW_ID])
        for start in range(0, max(len(ids), 1), size):
            yield whole.slice(start, size)

    def input(self, **parameters: Any) -> BuildInput:
        return BuildInput(dtype=self.values.type, batches=self.batches(), parameters=parameters)

    def part(self, start: int, stop: int) -> Rows:
        return Rows(values=self.values.slice(start, stop - start), ids=self.ids[start:stop])


def address(fragment: int, row: int) -> int:
    return (fragment << 32) | row


def new_folder(root: Path) -> SegmentFolder:
    place = FileAt(root=Location.parse(str(root)), path=f"_indices/{next(_numbers)}")
    return SegmentFolder(place=place)


def facts_of(built: BuiltSegment, folder: SegmentFolder, dtype: pa.DataType) -> SegmentFacts:
    return SegmentFacts(
        folder=folder, dtype=dtype, details=built.details, index_version=built.index_version
    )


def built(kind: IndexKind, rows: Rows, root: Path, **parameters: Any) -> SegmentFacts:
    folder = new_folder(root)
    return facts_of(kind.build(rows.input(**parameters), folder), folder, rows.values.type)


def members(mask: RowMask, ids: np.ndarray) -> set[int]:
    return {int(i) for i in ids if (int(i) in mask.ids) != mask.is_inverted}


def ensure_bounds(answer: Answer, leaf: Leaf, rows: Rows) -> None:
    """Raise AssertionError when the answer misses a row, or claims one too many."""
    batch = pa.RecordBatch.from_arrays([rows.values], names=["c"])
    truth = evaluate(leaf, batch).to_pylist()
    true = {int(i) for i, t in zip(rows.ids, truth, strict=True) if t is True}
    false = {int(i) for i, t in zip(rows.ids, truth, strict=True) if t is False}
    assert true <= members(answer.maybe_true, rows.ids), "a row is missing"
    assert members(answer.surely_true, rows.ids) <= true
    assert false <= members(answer.maybe_false, rows.ids), "a false row is missing"
    assert members(answer.surely_false, rows.ids) <= false
    if answer.is_exact:
        assert members(answer.maybe_true, rows.ids) == true


def ensure_serves(segment: OpenSegment, leaf: Leaf, rows: Rows) -> None:
    """Raise AssertionError unless the segment answers, and within bounds."""
    answer = segment.answer(leaf)
    assert answer is not None, leaf
    ensure_bounds(answer, leaf, rows)


def all_ids(rows: Rows) -> RowIds:
    return RowIds.of(rows.ids)


@st.composite
def drawn_ids(draw: st.DrawFn, size: int) -> np.ndarray:
    """Draw ascending addresses over a few fragments, with gaps."""
    places = st.tuples(st.sampled_from([0, 1, 7]), st.integers(0, 3 * size + 3))
    chosen = draw(st.lists(places, min_size=size, max_size=size, unique=True))
    return np.array(sorted(address(f, r) for f, r in chosen), dtype=np.uint64)


@st.composite
def drawn_rows(draw: st.DrawFn, dtype: pa.DataType, pool: Sequence[Any] | None = None) -> Rows:
    item = st.one_of(st.none(), st.sampled_from(pool if pool is not None else POOLS[dtype]))
    values = draw(st.lists(item, max_size=12))
    return Rows(values=pa.array(values, dtype), ids=draw(drawn_ids(len(values))))


def constants(dtype: pa.DataType) -> st.SearchStrategy[pa.Scalar]:
    return st.sampled_from(POOLS[dtype]).map(lambda value: pa.scalar(value, dtype))


@st.composite
def leaves_of(draw: st.DrawFn, dtype: pa.DataType) -> Leaf:
    """Draw a condition on the column."""
    column = Column(path=("c",), dtype=dtype)
    kinds = ["compare", "in", "null"]
    kinds += ["truth"] if pa.types.is_boolean(dtype) else []
    kinds += ["starts"] if pa.types.is_string(dtype) else []
    match draw(st.sampled_from(kinds)):
        case "compare":
            # Arrow does not order booleans.
            both = [Operator.EQUAL, Operator.NOT_EQUAL]
            operators = both if pa.types.is_boolean(dtype) else list(Operator)
            operator = draw(st.sampled_from(operators))
            return Comparison(column=column, operator=operator, value=draw(constants(dtype)))
        case "in":
            values = draw(st.lists(st.sampled_from(POOLS[dtype]), min_size=1, max_size=4))
            has_null = draw(st.booleans())
            array = pa.array(values, dtype).unique()
            return Membership(column=column, values=array, has_null=has_null)
        case "null":
            return IsNull(column=column)
        case "truth":
            return Truth(column=column)
        case _:
            text = draw(st.sampled_from(POOLS[dtype]))
            return TextMatch(column=column, test=TextTest.STARTS_WITH, text=text)
