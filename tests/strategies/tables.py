"""Strategies for schemas with a key column, and their rows."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tests.strategies.arrow_types import fields
from tests.strategies.arrow_values import array_of, values
from tests.strategies.target import Target

KEY = pa.field("key", pa.int64(), nullable=False)
COLUMN_NAMES = ("a", "b", "Camel", "größe", "with space", "select")
MAX_ROWS = 12


@st.composite
def schemas(draw: DrawFn, target: Target, *, max_columns: int = 4) -> pa.Schema:
    """Draw a schema: the key column, then columns of any type, in any place."""
    names = draw(
        st.lists(st.sampled_from(COLUMN_NAMES), min_size=1, max_size=max_columns, unique=True)
    )
    columns = [draw(fields(target, name)) for name in names]
    columns.insert(draw(st.integers(0, len(columns))), KEY)
    metadata = draw(st.sampled_from([None, None, {b"owner": b"tests", b"empty": b""}]))
    return pa.schema(columns, metadata=metadata)


@st.composite
def tables(
    draw: DrawFn,
    schema: pa.Schema,
    target: Target,
    *,
    rows: SearchStrategy[int] | None = None,
    first_key: int = 0,
) -> pa.Table:
    """Draw rows of the schema; keys count up from `first_key`."""
    least = 1 if target.is_legacy else 0
    count = draw(rows if rows is not None else st.integers(least, MAX_ROWS))
    columns = []
    for field in schema:
        if field.name == KEY.name:
            columns.append(pa.array(range(first_key, first_key + count), pa.int64()))
        else:
            items = draw(st.lists(values(field, target), min_size=count, max_size=count))
            columns.append(array_of(field.type, items, target))
    return pa.table(columns, schema=schema)
