"""Coded rows keep their ids, partitions and codes through files; unknown partitions are refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.errors import CorruptTableError
from lancelake.index.vector.coded_rows import (
    RowPartitions,
    coded_batch,
    coded_schema,
    group,
    grouped_batch,
    grouped_rows_of,
)
from lancelake.index.vector.grouped_rows import grouped_rows
from lancelake.index.vector.metric import Metric
from lancelake.index.vector.product_codes import ProductCodes
from lancelake.index.vector.vectors import Element

COUNT = 4
CODES = ProductCodes(
    metric=Metric.L2, element=Element.FLOAT32, bits=8, codebook=np.zeros((2, 256, 3), np.float32)
)
SCHEMA = coded_schema(CODES)
NUMBERS = st.lists(st.integers(0, COUNT - 1), max_size=20)


def batch(numbers: list[int], start: int = 0) -> pa.RecordBatch:
    ids = np.arange(start, start + len(numbers), dtype=np.uint64)
    codes = np.stack([ids, ids + 1], axis=1).astype(np.uint8)
    return coded_batch(SCHEMA, ids, np.array(numbers, dtype=np.int64), codes)


@given(first=NUMBERS, second=NUMBERS)
def test_grouped_rows_are_those_of_each_partition(first: list[int], second: list[int]) -> None:
    whole = first + second
    with grouped_rows(COUNT) as groups:
        group([batch(first), batch(second, len(first))], groups)
        for number in range(COUNT):
            found = grouped_rows_of(grouped_batch(SCHEMA, number, groups.partition(number)))
            rows = [row for row, chosen in enumerate(whole) if chosen == number]
            assert (found is None) == (not rows)
            if found is not None:
                assert found[0].tolist() == rows
                assert found[1].tolist() == [[row, row + 1] for row in rows]


@given(known=st.dictionaries(st.integers(0, 30), st.integers(0, 9)), asked=st.lists(st.integers()))
def test_assigned_partitions_are_found_by_row(known: dict[int, int], asked: list[int]) -> None:
    ids = np.array(list(known), dtype=np.uint64)
    given_partitions = RowPartitions.of(ids, np.array(list(known.values()), dtype=np.uint32))
    wanted = [abs(row) % 40 for row in asked]
    found = given_partitions.find(np.array(wanted, dtype=np.uint64))
    assert found.tolist() == [known.get(row, -1) for row in wanted]


def test_a_partition_that_a_model_does_not_have_is_refused() -> None:
    with (
        grouped_rows(COUNT) as groups,
        pytest.raises(CorruptTableError, match="partition 4, the model has 4"),
    ):
        group([batch([0, COUNT])], groups)
