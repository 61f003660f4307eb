"""Answers of a LABEL_LIST are what DataFusion says; merging and remapping keep them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lancelake.expr.condition import IsNull, Leaf, ListMatch, leaves
from lancelake.expr.evaluate import evaluate
from lancelake.expr.predicate import sql_condition
from lancelake.format.arrow_schema import from_arrow
from lancelake.index.kind import DROPPED, SegmentFacts
from lancelake.index.row_sets import RowIds
from lancelake.index.scalar.label_list import LABEL_LIST
from tests.strategies.index_values import FLOATS
from tests.support.index_segments import (
    Truth,
    addresses,
    build_input,
    built,
    facts_of,
    new_folder,
    truths,
)

COLUMN = "labels"
TYPES = {
    pa.list_(pa.string()): (["a", "b", "ab", "", "é"], "'{}'"),
    pa.large_list(pa.int32()): ([-1, 0, 1, 2, 3], "{}"),
    pa.list_(pa.float64()): (FLOATS, "CAST('{}' AS DOUBLE)"),
}


@st.composite
def cases(draw: st.DrawFn) -> tuple[pa.Array, list[Leaf]]:
    """Draw lists, and conditions on their elements."""
    dtype = draw(st.sampled_from(list(TYPES)))
    pool, literal = TYPES[dtype]
    lists = st.none() | st.lists(st.none() | st.sampled_from(pool), max_size=4)
    values = pa.array(draw(st.lists(lists, max_size=25)), dtype)
    one = st.sampled_from(pool).map(literal.format)
    many = st.lists(one | st.just("NULL"), min_size=1, max_size=3).map(", ".join)
    texts = st.one_of(
        one.map(lambda item: f"array_has({COLUMN}, {item})"),
        many.map(lambda items: f"array_has_any({COLUMN}, [{items}])"),
        many.map(lambda items: f"array_has_all({COLUMN}, [{items}])"),
        st.just(f"{COLUMN} is null"),
    )
    schema = pa.schema([(COLUMN, dtype)])
    asked = draw(st.lists(texts, min_size=1, max_size=5))
    found = [sql_condition(text, from_arrow(schema), schema) for text in asked]
    return values, [leaf for condition in found for leaf in leaves(condition)]


def check(facts: SegmentFacts, values: pa.Array, ids: list[int], leaf: Leaf) -> None:
    assert isinstance(leaf, ListMatch | IsNull)
    answer = LABEL_LIST.open(facts).answer(leaf)
    assert answer is not None
    assert truths(answer, ids) == scanned(leaf, values)


def scanned(leaf: Leaf, values: pa.Array) -> Truth:
    return evaluate(leaf, pa.RecordBatch.from_arrays([values], names=[COLUMN])).to_pylist()


@given(cases())
def test_an_answer_is_the_truth_of_each_row(case) -> None:
    values, asked = case
    ids = addresses(len(values))
    with tempfile.TemporaryDirectory() as root:
        facts = built(LABEL_LIST, values, ids, Path(root))
        for leaf in asked:
            check(facts, values, ids, leaf)


@given(cases(), st.integers(0, 25), st.integers(0, 25))
def test_a_merged_segment_has_the_rows_of_all(case, one: int, other: int) -> None:
    values, asked = case
    ids = addresses(len(values))
    first, second = sorted((min(one, len(values)), min(other, len(values))))
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        old = built(LABEL_LIST, values[:second], ids[:second], root)
        wanted = RowIds.of(np.array(ids[:first], dtype=np.uint64))
        folder = new_folder(root)
        new = build_input(LABEL_LIST, values[second:], ids[second:])
        facts = facts_of(LABEL_LIST.merge([(old, wanted)], new, folder), folder, values.type)
        left = [*range(first), *range(second, len(values))]
        for leaf in asked:
            rows = values.take(pa.array(left, pa.int64()))
            check(facts, rows, [ids[i] for i in left], leaf)


@given(cases())
def test_a_remapped_segment_has_the_rows_that_are_left(case) -> None:
    values, asked = case
    ids = addresses(len(values))
    target = {old: DROPPED if row % 3 == 1 else old + (9 << 32) for row, old in enumerate(ids)}

    def row_map(some):
        return np.array([target[int(row)] for row in some], dtype=np.uint64)

    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        old = built(LABEL_LIST, values, ids, root)
        folder = new_folder(root)
        facts = facts_of(LABEL_LIST.remap(old, row_map, folder), folder, values.type)
        left = [row for row in range(len(values)) if row % 3 != 1]
        for leaf in asked:
            rows = values.take(pa.array(left, pa.int64()))
            check(facts, rows, [target[ids[i]] for i in left], leaf)
