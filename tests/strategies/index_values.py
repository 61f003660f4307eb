"""Values of indexed columns, and conditions on them."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

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
from lancelake.expr.literals import is_text

NAN = float("nan")
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, NAN, math.copysign(NAN, -1), math.inf, -math.inf]
WORDS = ["", "a", "ab", "abc", "b", "é", "\x7f", "\U0010ffff", "a\U0010ffff", "a\U0010ffffb", "z"]
BYTES = [b"", b"\0", b"a", b"a\xff", b"a\xff\xff", b"\xff", b"\xff\xff", b"b"]
COLUMN = "column"
COMPARED_TYPES = (
    *(pa.int8(), pa.int64(), pa.uint64(), pa.float32(), pa.float64(), pa.bool_()),
    *(pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.binary(2)),
    *(pa.date32(), pa.date64(), pa.time32("s"), pa.time64("ns")),
    *(pa.timestamp("us"), pa.timestamp("ns", "UTC"), pa.duration("ms")),
    *(pa.decimal128(5, 2), pa.decimal256(40, 2)),
)
# Arrow does not compare these.
OTHER_TYPES = (pa.float16(), pa.decimal128(5, -2))
TYPES = (*COMPARED_TYPES, *OTHER_TYPES)


def pool(dtype: pa.DataType) -> list[object]:
    """Return values of a type at the edges of its order."""
    if pa.types.is_boolean(dtype):
        return [True, False]
    if pa.types.is_floating(dtype):
        halves = [np.float16(value) for value in FLOATS]
        return halves if pa.types.is_float16(dtype) else list(FLOATS)
    if is_text(dtype):
        return list(WORDS)
    if pa.types.is_fixed_size_binary(dtype):
        return [b"aa", b"ab", b"\0\0", b"\xff\xff"]
    if pa.types.is_binary(dtype) or pa.types.is_large_binary(dtype):
        return list(BYTES)
    if pa.types.is_decimal(dtype):
        return [Decimal(n).scaleb(-dtype.scale) for n in range(-5, 6)]
    if pa.types.is_date64(dtype):
        return [n * 86_400_000 for n in range(-3, 4)]
    if pa.types.is_uint64(dtype):
        return [*range(7), (1 << 64) - 1, 1 << 63]
    return list(range(7)) if pa.types.is_time(dtype) else list(range(-6, 7))


def values(dtype: pa.DataType) -> st.SearchStrategy[object]:
    """Draw a value of a type that is not null."""
    return st.sampled_from(pool(dtype))


def arrays(dtype: pa.DataType, max_size: int = 40) -> st.SearchStrategy[pa.Array]:
    """Draw an array with nulls and many equal values."""
    some = st.lists(st.none() | values(dtype), max_size=max_size)
    return some.map(lambda found: pa.array(found, dtype))


def leaves(dtype: pa.DataType) -> st.SearchStrategy[Leaf]:
    """Draw a condition on a column of a type."""
    column = Column(path=(COLUMN,), dtype=dtype)
    one = values(dtype).map(lambda v: pa.array([v], dtype)[0])
    many = st.lists(values(dtype), max_size=8).map(lambda v: pa.array(v, dtype))
    kinds: list[st.SearchStrategy[Leaf]] = [
        st.just(IsNull(column=column)),
        st.builds(
            Comparison, column=st.just(column), operator=st.sampled_from(Operator), value=one
        ),
        st.builds(Membership, column=st.just(column), values=many, has_null=st.booleans()),
    ]
    if is_text(dtype):
        texts = st.sampled_from(WORDS)
        test = st.just(TextTest.STARTS_WITH)
        kinds.append(st.builds(TextMatch, column=st.just(column), test=test, text=texts))
    if pa.types.is_boolean(dtype):
        kinds.append(st.just(Truth(column=column)))
    return st.one_of(kinds)
