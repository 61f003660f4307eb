"""The first rows by several keys, each with its own place for nulls."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lancelake.scan.reduce import TopRows
from lancelake.scan.request import Ordering

VALUES = st.none() | st.integers(0, 3)


@given(
    rows=st.lists(st.tuples(VALUES, VALUES), max_size=20),
    ascending=st.tuples(st.booleans(), st.booleans()),
    nulls_first=st.tuples(st.booleans(), st.booleans()),
)
def test_rows_are_the_first_of_the_sorted_ones(
    rows: list[tuple[int | None, int | None]],
    ascending: tuple[bool, bool],
    nulls_first: tuple[bool, bool],
) -> None:
    keys = tuple(
        Ordering(column=column, ascending=ascending[n], nulls_first=nulls_first[n])
        for n, column in enumerate("ab")
    )
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    batches = [
        pa.RecordBatch.from_pylist([{"a": a, "b": b} for a, b in part], schema)
        for part in (rows[:7], rows[7:])
    ]

    def place(row: tuple[int | None, int | None], n: int) -> tuple[bool, int]:
        value = row[n]
        if value is None:
            return (not nulls_first[n], 0)
        return (nulls_first[n], value if ascending[n] else -value)

    ordered = sorted(rows, key=lambda row: (place(row, 0), place(row, 1)))
    first = pa.Table.from_batches(TopRows(keys=keys, count=5).run(batches), schema)
    assert [(row["a"], row["b"]) for row in first.to_pylist()] == ordered[:5]
