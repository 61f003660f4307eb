"""Random conditions select the same rows as in official Lance."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import lance as official
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

import lancelake.pylance as lance

Sql = SearchStrategy[str]

DAYS = [dt.date(1969, 12, 31), dt.date(2020, 2, 29), dt.date(2026, 1, 1)]
TIMES = [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2020, 2, 29, 12)]
TEXTS = ["", "a", "A", "ab", "a%", "ä", "it's", "b_c"]
FLOATS = [0.5, -0.0, 0.0, 1024.0, float("nan"), float("inf"), float("-inf")]
COLUMNS: dict[str, tuple[pa.DataType, list[object]]] = {
    "id": (pa.int64(), [0, 1, 2, 3]),
    "i8": (pa.int8(), [-128, -1, 0, 1, 127]),
    "u8": (pa.uint8(), [0, 1, 2, 255]),
    "i64": (pa.int64(), [-(2**63), -1, 0, 1, 2**63 - 1]),
    "f32": (pa.float32(), FLOATS),
    "f64": (pa.float64(), [0.1, *FLOATS]),
    "s": (pa.string(), TEXTS),
    "big": (pa.large_string(), TEXTS),
    "d": (pa.dictionary(pa.int8(), pa.string()), TEXTS),
    "b": (pa.bool_(), [True, False]),
    "day": (pa.date32(), DAYS),
    "ts": (pa.timestamp("us"), TIMES),
    "dec": (pa.decimal128(10, 2), [Decimal("-1.50"), Decimal("0.00")]),
    "bin": (pa.binary(), [b"", b"a", b"\xff"]),
    "st": (
        pa.struct([("x", pa.int32()), ("B", pa.bool_())]),
        [{"x": x, "B": b} for x in (None, 0, 1) for b in (None, True, False)],
    ),
    "l": (pa.list_(pa.int64()), [[], [0], [1, None], [None], [0, 1]]),
}
ROWS = 90
COMPARISONS = st.sampled_from(["=", "<>", "!=", "<", "<=", ">", ">="])


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table with nulls and edges in every column, in ever other company."""
    path = tmp_path_factory.mktemp("filters") / "t.lance"
    for numbers in (range(40), range(40, 80), range(80, ROWS)):
        part = rows_of(numbers)
        official.write_dataset(part, path, mode="append", data_storage_version="2.1")
    return path


def rows_of(numbers: range) -> pa.Table:
    columns = {"row": pa.array(numbers, pa.int64())}
    for place, (name, (dtype, values)) in enumerate(COLUMNS.items()):
        cycle = [None, *values]
        items = [cycle[(row * (place + 1) + row // 7) % len(cycle)] for row in numbers]
        columns[name] = pa.array(items, dtype)
    return pa.table(columns)


def text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def compared(column: str, literals: Sql) -> Sql:
    """Draw comparisons of a column with literals, of either kind of list, and of null."""
    return st.one_of(
        st.tuples(COMPARISONS, literals).map(lambda t: f"{column} {t[0]} {t[1]}"),
        st.tuples(literals, COMPARISONS).map(lambda t: f"{t[0]} {t[1]} {column}"),
        st.lists(literals, min_size=1, max_size=3).map(lambda v: f"{column} IN ({', '.join(v)})"),
        st.lists(literals, min_size=1, max_size=3).map(
            lambda v: f"{column} NOT IN ({', '.join(v)})"
        ),
        st.tuples(literals, literals).map(lambda t: f"{column} BETWEEN {t[0]} AND {t[1]}"),
        st.sampled_from([f"{column} IS NULL", f"{column} IS NOT NULL"]),
    )


def numbers(*values: int) -> Sql:
    return st.sampled_from([str(value) for value in values])


def texts(column: str) -> Sql:
    """Draw conditions on text."""
    patterns = st.sampled_from(["a%", "%", "_", "a\\%", "%b%", ""])
    regexes = st.sampled_from(["^a", "[ab]", "b.c", "(?i)A$"])
    return st.one_of(
        compared(column, st.sampled_from([text(t) for t in TEXTS])),
        patterns.map(lambda p: f"{column} LIKE '{p}'"),
        patterns.map(lambda p: f"{column} NOT ILIKE '{p}'"),
        regexes.map(lambda r: f"regexp_match({column}, '{r}')"),
        regexes.map(lambda r: f"regexp_like({column}, '{r}')"),
        st.sampled_from([f"starts_with({column}, 'a')", f"length({column}) > 1"]),
        st.just(f"lower({column}) = 'a'"),
    )


ATOMS: Sql = st.one_of(
    compared("i8", numbers(-128, -1, 0, 127)),
    compared("u8", numbers(0, 1, 255)),
    compared("i64", numbers(-1, 0, 2**63 - 1)),
    compared("f32", st.sampled_from(["0.5", "0", "-0.0", "1024", "CAST('NaN' AS float)"])),
    compared("f64", st.sampled_from(["0.1", "0", "-0.0", "1e300", "CAST('NaN' AS double)"])),
    texts("s"),
    texts("big"),
    compared("d", st.sampled_from([text(t) for t in TEXTS])),
    compared("day", st.sampled_from([f"DATE '{day}'" for day in DAYS])),
    compared("ts", st.sampled_from([f"TIMESTAMP '{time}'" for time in TIMES])),
    compared("dec", st.sampled_from(["CAST('-1.5' AS decimal(10, 2))", "0"])),
    compared("bin", st.sampled_from(["X'61'", "X'ff'", "X''"])),
    compared("st.x", numbers(0, 1)),
    st.sampled_from(["b", "b = true", "b IS TRUE", "b IS NOT FALSE", "st.B", "st.`B` = false"]),
    st.sampled_from(["st IS NULL", "st IS NOT NULL", "l IS NULL", "true", "i8 = u8", "i8 = i64"]),
    st.sampled_from(["array_has(l, 1)", "array_length(l) = 2", "l[1] = 0", "array_has(l, i64)"]),
    st.sampled_from(["i8 + 1 > 0", "i8 * 2 = u8", "id % 2 = 1", "-i8 > 0", "id = 1 + 1"]),
)


def joined(parts: Sql) -> Sql:
    """Draw conditions made of others."""
    return st.one_of(
        st.tuples(parts, st.sampled_from(["AND", "OR", "or"]), parts).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        parts.map(lambda part: f"NOT ({part})"),
    )


@st.composite
def conditions(draw: DrawFn) -> str:
    """Draw a condition of up to five parts."""
    return draw(st.recursive(ATOMS, joined, max_leaves=5))


@settings(max_examples=6 * settings.default.max_examples)
@given(condition=conditions())
def test_condition_keeps_the_rows_that_official_lance_keeps(path: Path, condition: str) -> None:
    expected = kept(path, condition)
    assume(expected is not None)
    ours = lance.dataset(path)
    assert ours.to_table(["row"], condition)["row"].to_pylist() == expected
    assert ours.count_rows(condition) == len(expected or ())


def kept(path: Path, condition: str) -> list[int] | None:
    """Return the rows official Lance keeps; None where it refuses what we take."""
    try:
        return list(official.dataset(path).to_table(["row"], condition)["row"].to_pylist())
    except (ValueError, OSError, pa.ArrowException):
        return None
