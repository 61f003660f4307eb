"""Answers of exact indices are the truth of each row; merging and remapping keep them."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.expr.condition import Column, Comparison, IsNull, Leaf, Membership, Operator
from lancelake.expr.evaluate import evaluate
from lancelake.expr.literals import is_comparable
from lancelake.index.kind import DROPPED, BuildInput, IndexKind, SegmentFacts
from lancelake.index.row_sets import RowIds
from lancelake.index.scalar.bitmap import BITMAP
from lancelake.index.scalar.btree.kind import BTREE
from lancelake.index.sort import row_schema
from tests.strategies.index_values import (
    COLUMN,
    COMPARED_TYPES,
    OTHER_TYPES,
    TYPES,
    arrays,
    leaves,
    pool,
)
from tests.support.index_segments import (
    Truth,
    addresses,
    build_input,
    built,
    facts_of,
    new_folder,
    truths,
)

KINDS = (BTREE, BITMAP)
PAGE_ROWS = {"zone_size": 3}

kinds = st.sampled_from(KINDS)
columns = st.sampled_from(COMPARED_TYPES).flatmap(
    lambda dtype: st.tuples(arrays(dtype), st.lists(leaves(dtype), min_size=1, max_size=6))
)


def scanned(leaf: Leaf, values: pa.Array) -> Truth:
    batch = pa.RecordBatch.from_arrays([values], names=[COLUMN])
    return evaluate(leaf, batch).to_pylist()


def parameters(kind: IndexKind) -> dict[str, int]:
    return PAGE_ROWS if kind is BTREE else {}


def check(kind: IndexKind, facts: SegmentFacts, values: pa.Array, ids: list[int], leaf: Leaf):
    answer = kind.open(facts).answer(leaf)
    if answer is None:
        assert kind is BITMAP
        assert not is_comparable(values.type)
    else:
        assert truths(answer, ids) == scanned(leaf, values)


@given(kind=kinds, column=columns)
def test_an_answer_is_the_truth_of_each_row(kind, column) -> None:
    values, asked = column
    ids = addresses(len(values))
    with tempfile.TemporaryDirectory() as root:
        facts = built(kind, values, ids, Path(root), parameters=parameters(kind))
        for leaf in asked:
            check(kind, facts, values, ids, leaf)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_type_is_answered(kind, dtype: pa.DataType, tmp_path: Path) -> None:
    some = pool(dtype)
    values = pa.array([*some, None, *reversed(some), None], dtype)
    ids = addresses(len(values))
    facts = built(kind, values, ids, tmp_path, parameters=parameters(kind))
    column = Column(path=(COLUMN,), dtype=dtype)
    asked: list[Leaf] = [IsNull(column=column)]
    if dtype not in OTHER_TYPES:
        asked += [
            Comparison(column=column, operator=operator, value=value)
            for operator in Operator
            for value in pa.array(some, dtype)
        ]
        asked.append(Membership(column=column, values=pa.array(some[:3], dtype)))
    for leaf in asked:
        check(kind, facts, values, ids, leaf)


@given(column=columns, cuts=st.lists(st.integers(0, 40), max_size=3))
def test_ranges_answer_as_one_file_does(column, cuts: list[int]) -> None:
    values, asked = column
    ids = addresses(len(values))
    with tempfile.TemporaryDirectory() as root:
        facts = built_in_ranges(values, ids, cuts, Path(root))
        for leaf in asked:
            check(BTREE, facts, values, ids, leaf)


def built_in_ranges(
    values: pa.Array, ids: list[int], cuts: Sequence[int], root: Path
) -> SegmentFacts:
    folder = new_folder(root)
    ordered = build_input(BTREE, values, ids)
    rows = pa.Table.from_batches(ordered.batches, schema=row_schema(values.type))
    bounds = [0, *sorted(min(cut, len(values)) for cut in cuts), len(values)]
    parts = [
        BTREE.build_range(
            BuildInput(
                dtype=values.type,
                batches=rows.slice(start, stop - start).to_batches(),
                parameters=PAGE_ROWS,
            ),
            place,
            folder,
        )
        for place, (start, stop) in enumerate(itertools.pairwise(bounds))
    ]
    return facts_of(BTREE.finish_ranges(parts, values.type, PAGE_ROWS, folder), folder, values.type)


@given(kind=kinds, column=columns, more=st.integers(0, 40), kept=st.integers(0, 40))
def test_a_merged_segment_has_the_rows_of_all(kind, column, more: int, kept: int) -> None:
    values, asked = column
    ids = addresses(len(values))
    first, second = sorted((min(more, len(values)), min(kept, len(values))))
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        options = {"parameters": parameters(kind)}
        old = built(kind, values[:second], ids[:second], root, **options)
        other = built(kind, values[:0], [], root, **options)
        wanted = RowIds.of(np.array(ids[:first], dtype=np.uint64))
        folder = new_folder(root)
        new = build_input(kind, values[second:], ids[second:])
        merged = kind.merge([(old, wanted), (other, None)], new, folder)
        facts = facts_of(merged, folder, values.type)
        left = [*range(first), *range(second, len(values))]
        for leaf in asked:
            check(
                kind, facts, values.take(pa.array(left, pa.int64())), [ids[i] for i in left], leaf
            )


@given(
    kind=kinds,
    column=columns,
    cuts=st.none() | st.lists(st.integers(0, 40), max_size=2),
    step=st.integers(1, 4),
)
def test_a_remapped_segment_has_the_rows_that_are_left(kind, column, cuts, step: int) -> None:
    values, asked = column
    ids = addresses(len(values))
    is_gone = [row % step == step - 1 and step > 1 for row in range(len(values))]
    target = {
        old: DROPPED if gone else old + (9 << 32) for old, gone in zip(ids, is_gone, strict=True)
    }

    def row_map(some):
        return np.array([target[int(row)] for row in some], dtype=np.uint64)

    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        if kind is BTREE and cuts is not None:
            old = built_in_ranges(values, ids, cuts, root)
        else:
            old = built(kind, values, ids, root, parameters=parameters(kind))
        folder = new_folder(root)
        remapped = kind.remap(old, row_map, folder)
        assert remapped is not None
        facts = facts_of(remapped, folder, values.type)
        left = [row for row in range(len(values)) if not is_gone[row]]
        ids_left = [target[ids[row]] for row in left]
        for leaf in asked:
            check(kind, facts, values.take(pa.array(left, pa.int64())), ids_left, leaf)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_an_index_that_lacks_rows_breaks_the_law(kind, tmp_path: Path) -> None:
    values = pa.array([1, 2, 3, 1])
    ids = addresses(4)
    facts = built(kind, values[:2], ids[:2], tmp_path)
    column = Column(path=(COLUMN,), dtype=pa.int64())
    leaf = Comparison(column=column, operator=Operator.EQUAL, value=pa.scalar(1))
    answer = kind.open(facts).answer(leaf)
    assert answer is not None
    assert truths(answer, ids) != scanned(leaf, values)
