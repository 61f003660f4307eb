from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lancelake.describe.column_profile import profile


@pytest.mark.parametrize("distinct", [1, 10, 1_000, 50_000, 300_000])
def test_distinct_values_are_estimated_within_five_percent(distinct: int) -> None:
    numbers = np.arange(300_000) % distinct
    table = pa.table({"x": numbers, "s": pa.array(numbers.astype(str))})
    for column in profile(table.to_batches(max_chunksize=20_000), table.schema):
        assert column.distinct == pytest.approx(distinct, rel=0.05)


def test_the_histogram_of_many_rows_comes_from_a_sample_of_all() -> None:
    table = pa.table({"x": np.repeat(np.arange(16), 20_000)})
    (column,) = profile(table.to_batches(max_chunksize=10_000), table.schema)
    assert column.histogram is not None
    assert len(set(column.histogram)) <= 2
    assert min(column.histogram) > 0
