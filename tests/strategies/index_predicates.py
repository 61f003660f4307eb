"""Conditions in SQL on the columns of tables with indices."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

Sql = SearchStrategy[str]

NUMBERS = ["-3", "-1", "0", "1", "2", "5", "100"]
FLOATS = ["0.0", "-0.0", "1.5", "-1.5", "1e300", "CAST('NaN' AS DOUBLE)", "-CAST('NaN' AS DOUBLE)"]
TEXTS = ["''", "'a'", "'ab'", "'abc'", "'é'", "'b'", "'zz'"]
DAYS = ["DATE '1969-12-31'", "DATE '1970-01-01'", "DATE '1970-01-03'"]
_OPERATORS = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])


def _compared(column: str, values: list[str]) -> Sql:
    literal = st.sampled_from(values)
    many = st.lists(literal, min_size=1, max_size=3).map(", ".join)
    return st.one_of(
        st.tuples(_OPERATORS, literal).map(lambda t: f"{column} {t[0]} {t[1]}"),
        st.tuples(literal, _OPERATORS).map(lambda t: f"{t[0]} {t[1]} {column}"),
        many.map(lambda v: f"{column} IN ({v})"),
        many.map(lambda v: f"{column} NOT IN ({v})"),
        many.map(lambda v: f"{column} IN ({v}, NULL)"),
        st.tuples(literal, literal).map(lambda t: f"{column} BETWEEN {t[0]} AND {t[1]}"),
        st.tuples(literal, literal).map(lambda t: f"{column} > {t[0]} AND {column} <= {t[1]}"),
        st.sampled_from([f"{column} IS NULL", f"{column} IS NOT NULL"]),
    )


def _texts(column: str) -> Sql:
    parts = st.sampled_from(["a", "ab", "pie", "apple", "zzz", "é"])
    return st.one_of(
        _compared(column, TEXTS),
        parts.map(lambda p: f"starts_with({column}, '{p}')"),
        parts.map(lambda p: f"contains({column}, '{p}')"),
        parts.map(lambda p: f"{column} LIKE '{p}%'"),
        parts.map(lambda p: f"{column} LIKE '%{p}%'"),
        parts.map(lambda p: f"{column} LIKE '%{p}'"),
        parts.map(lambda p: f"{column} LIKE '%{p}_%'"),
        parts.map(lambda p: f"{column} NOT LIKE '%{p}%1%'"),
        parts.map(lambda p: f"regexp_like({column}, '{p}.*1')"),
    )


def _lists(column: str) -> Sql:
    label = st.sampled_from(["'x'", "'y'", "'z'", "'none'"])
    many = st.lists(label, min_size=1, max_size=3).map(", ".join)
    return st.one_of(
        label.map(lambda v: f"array_has({column}, {v})"),
        label.map(lambda v: f"array_contains({column}, {v})"),
        many.map(lambda v: f"array_has_any({column}, [{v}])"),
        many.map(lambda v: f"array_has_all({column}, [{v}])"),
        st.sampled_from([f"{column} IS NULL", f"{column} IS NOT NULL"]),
    )


_LEAVES: Sql = st.one_of(
    _compared("i", NUMBERS),
    _compared("f", FLOATS),
    _texts("s"),
    _texts("w"),
    st.sampled_from(["b", "NOT b", "b = true", "b <> true", "b IS NULL", "b IN (true)"]),
    _compared("d", DAYS),
    _lists("l"),
    _compared("st.x", NUMBERS),
    _texts("st.s"),
    st.sampled_from(["n > 20", "n % 3 = 1", "true", "i = st.x", "length(s) = 1", "i + 1 > 2"]),
)


def _joined(parts: Sql) -> Sql:
    word = st.sampled_from(["AND", "OR"])
    return st.one_of(
        st.tuples(parts, word, parts).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(parts, word, parts, parts).map(lambda t: f"({t[0]} {t[1]} {t[2]} {t[1]} {t[3]})"),
        parts.map(lambda part: f"NOT ({part})"),
    )


predicates: Sql = st.recursive(_LEAVES, _joined, max_leaves=6)
