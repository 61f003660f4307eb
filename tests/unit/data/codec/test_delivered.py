"""A read of the codec that ends early is an error."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lancelake.data.codec.readers import DeliveredRows, ensure_delivered
from lancelake.errors import CorruptTableError


def rows(asked: int, *batches: int) -> DeliveredRows:
    parts = [pa.record_batch({"n": list(range(count))}) for count in batches]
    schema = pa.schema({"n": pa.int64()})
    return DeliveredRows(lambda: pa.RecordBatchReader.from_batches(schema, parts), asked, "f.lance")


def test_all_rows_are_delivered() -> None:
    assert [batch.num_rows for batch in rows(5, 3, 2)] == [3, 2]


@pytest.mark.parametrize("batches", [(), (3,), (3, 0)])
def test_an_end_before_the_last_row_is_an_error(batches: tuple[int, ...]) -> None:
    delivered = sum(batches)
    with pytest.raises(CorruptTableError, match=rf"f\.lance delivered {delivered} rows of the 5"):
        list(rows(5, *batches))


def test_more_rows_than_asked_for_are_an_error() -> None:
    with pytest.raises(CorruptTableError, match="delivered 6 rows of the 5"):
        list(rows(5, 3, 3))


def test_other_numbers_of_rows_are_an_error() -> None:
    ensure_delivered(5, 5, "f.lance")
    with pytest.raises(CorruptTableError, match=r"f\.lance delivered 4 rows of the 5"):
        ensure_delivered(4, 5, "f.lance")
