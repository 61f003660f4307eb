"""Programs written for pylance return the same results with our import."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance as official
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lancelake.pylance as lance
from tests.support.compare import assert_same_table
from tests.support.official import Official
from tests.support.read_tables import varied, versioned

NAN = float("nan")
RESERVED = ("select", "from", "where", "end", "like", "in", "is", "and", "or", "not", "case", "as")
SPECIAL = ("with space", "größe", "日本", "user-id", "order:id", 'a"q', "a'q", "UPPER", "userId")


def every_type() -> pa.Table:
    """Return five rows of every type that filters know, the third of nulls."""
    moments = [dt.datetime(2020, 1, 1), dt.datetime(2021, 1, 1, 12), None, dt.datetime(1969, 1, 1)]
    moments.append(dt.datetime(2020, 1, 1))
    days = [None if moment is None else moment.date() for moment in moments]
    member = pa.struct([("x", pa.int32()), ("Y", pa.string()), ("b", pa.bool_())])
    members = [{"x": 1, "Y": "a", "b": True}, None, {"x": None, "Y": "c"}, {"x": 4, "b": False}]
    members.append({"x": 5, "Y": "e", "b": None})
    columns = {
        "id": pa.array(range(5), pa.int64()),
        "i": pa.array([1, 2, None, 4, 5], pa.int64()),
        "i8": pa.array([1, 2, None, -128, 127], pa.int8()),
        "u8": pa.array([0, 1, None, 200, 255], pa.uint8()),
        "u64": pa.array([0, 1, None, 2**63, 2**64 - 1], pa.uint64()),
        "h": pa.array([1.5, 2, None, 4, 5], pa.float16()),
        "g": pa.array([0.1, 0.2, None, 1.0, NAN], pa.float32()),
        "f": pa.array([1.5, NAN, None, -0.0, float("inf")], pa.float64()),
        "s": pa.array(["abc", "ABC", None, "a%c", "it's"]),
        "big": pa.array(["a", "b", None, "c", "d"], pa.large_string()),
        "bin": pa.array([b"a", b"\x00", None, b"\xff", b""]),
        "fixed": pa.array([b"ab", b"cd", None, b"ef", b"gh"], pa.binary(2)),
        "b": pa.array([True, False, None, True, False]),
        "date": pa.array(days),
        "timestamp": pa.array(moments, pa.timestamp("us")),
        "seconds": pa.array(moments, pa.timestamp("s")),
        "tz": pa.array(moments, pa.timestamp("us", "UTC")),
        "ny": pa.array(moments, pa.timestamp("ms", "America/New_York")),
        "decimal": pa.array([Decimal("1.50"), Decimal("2.50"), None, Decimal(-3), Decimal(0)]),
        "d": pa.array(["x", "y", None, "x", "z"]).dictionary_encode(),
        "l": pa.array([[1, 2], [], None, [3, None], [5]], pa.list_(pa.int64())),
        "ls": pa.array([[{"q": 1}], [], None, [{"q": None}], [None]]),
        "v": pa.array([[1.0, 2.0]] * 5, pa.list_(pa.float32(), 2)),
        "st": pa.array(members, member),
        "count": pa.array(range(5), pa.int32()),
        "double": pa.array(range(5), pa.int32()),
    }
    for name in (*RESERVED, *SPECIAL):
        columns[name] = pa.array(range(5), pa.int64())
    return pa.table(columns)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table of every type."""
    path = tmp_path_factory.mktemp("parity") / "t.lance"
    official.write_dataset(every_type(), path, data_storage_version="2.1")
    return path


FILTERS = """
i = 1 AND f > 0
f > 1
f = f
f <> f
f = 0
isnan(f)
f = CAST('NaN' AS double)
g = 0.1
g <= 0.1
g IN (0.1, 0.2)
g BETWEEN 0.1 AND 0.2
h = 1.5
h > 2
i8 = -128
i8 IN (1, 2)
u8 = 255
u64 = 18446744073709551615
u64 > 9223372036854775807
s = 'abc'
s = "abc"
s = 'it''s'
s LIKE 'a%'
s LIKE 'a\\%c'
s ILIKE 'a%'
s NOT LIKE 'a%'
s IN ('abc', 'ABC')
s NOT IN ('abc', NULL)
s IS NULL
s IS DISTINCT FROM 'abc'
big = 'a'
big LIKE 'a%'
b
NOT b
b IS TRUE
b IS NOT TRUE
b = (id = 0)
bin = X'61'
bin > X'60'
fixed = X'6162'
date = DATE '2020-01-01'
date = CAST('2020-01-01' AS date)
date BETWEEN DATE '2019-01-01' AND DATE '2020-06-01'
timestamp = TIMESTAMP '2020-01-01 00:00:00'
timestamp = CAST('2020-01-01' AS timestamp(6))
timestamp = CAST('2020-01-01' AS datetime)
timestamp = CAST('2020-01-01' AS datetime(3))
timestamp < DATE '2021-01-01'
seconds >= TIMESTAMP '2020-01-01 00:00:00'
tz = TIMESTAMP '2020-01-01 00:00:00'
ny = TIMESTAMP '2020-01-01 00:00:00'
ny < tz
CAST(timestamp AS date) = DATE '2020-01-01'
CAST(date AS string) = '2020-01-01'
decimal = CAST('1.5' AS decimal(10, 2))
decimal = DECIMAL(10, 2) '1.50'
decimal > 0
decimal BETWEEN 1 AND 2
d = 'x'
d IN ('x', 'z')
d LIKE 'x%'
d IS NULL
array_has(l, 1)
array_has_any(l, [1, 5])
array_has_all(l, [1, 2])
array_length(l) = 2
l[1] = 1
v[1] = 1.0
ls[1].q = 1
ls[1]['q'] = 1
st.x = 1
st.x IS NULL
st IS NULL
st.b
NOT st.b
st.`Y` = 'a'
st['x'] = 1
st.x IN (1, 4) OR st.Y = 'c'
count = 1
double = 1
f = 'NaN'::double
upper = 1
upper(s) = 'ABC'
userid = 1
userId = 1
`userId` = 1
`with space` = 1
größe = 1
日本 = 1
`user-id` = 1
`order:id` = 1
`a"q` = 1
`a'q` = 1
select = 1
id = 1 AND end = 1
id = 1 OR (end = 2 AND like > 0)
not = 1
case = 1
`not` = 1
regexp_match(s, 'a.c')
NOT regexp_match(s, 'a.c')
NOT (regexp_match(s, 'a') AND id = 0)
regexp_match(s, 'a.c') IS NOT NULL
regexp_match(s, 'a')[1] = 'a'
regexp_like(s, 'a.c')
starts_with(s, 'a') AND ends_with(s, 'c')
contains(s, 'b')
length(s) = 3
s || 'x' = 'abcx'
concat(s, 'x') = 'abcx'
i + 1 = 2
i % 2 = 0
-i = -1
id = 1 * -1 + 2
id <= 2 + -2
i8 + 1 > 0
coalesce(i, 7) = 7
nullif(i, 1) IS NULL
TRY_CAST(s AS int) IS NULL
CAST(s AS binary) = X'616263'
CAST(i AS bigint unsigned) = 1
true
false
1 = 1
id = 1 -- and why
id /* is */ = 1
id BETWEEN 1 AND 3 AND id <> 2
id IN (1, 2) AND id IN (2, 3)
_rowid IN (1, 2)
_rowaddr > 1 AND id < 4
_rowoffset = 1
date_part('year', timestamp) = 2020
date_trunc('year', timestamp) = TIMESTAMP '2020-01-01'
to_timestamp('2020-01-01') = timestamp
"""


@pytest.mark.parametrize("filter", FILTERS.strip().splitlines())
def test_filter_keeps_the_same_rows(path: Path, filter: str) -> None:
    theirs = official.dataset(path).to_table(["id"], filter)["id"].to_pylist()
    assert lance.dataset(path).to_table(["id"], filter)["id"].to_pylist() == theirs


REFUSED = """
nosuch = 1
st.nosuch = 1
`st.x` = 1
i
s
1
NULL
id =
(id = 1
id IN ()
i = 'abc'
nosuch(i)
!(id = 1)
id > 1 && id < 3
$dollar = 1
"""


@pytest.mark.parametrize("filter", REFUSED.strip().splitlines())
def test_filter_is_refused_by_both(path: Path, filter: str) -> None:
    with pytest.raises((ValueError, OSError, RuntimeError)):
        official.dataset(path).to_table(["id"], filter)
    with pytest.raises(ValueError, match=r"."):
        lance.dataset(path).to_table(["id"], filter)


PYARROW = [
    pc.field("i") == 1,
    (pc.field("i") > 1) & (pc.field("id") < 4),
    (pc.field("i") > 1) | pc.field("b"),
    ~pc.field("b"),
    pc.field("i").isin([1, 2]),
    pc.field("i").is_null(),
    pc.field("i").is_valid(),
    pc.field("s") == "abc",
    pc.field("s").isin(["abc", "ABC"]),
    pc.field("date") == dt.date(2020, 1, 1),
    pc.field("timestamp") == dt.datetime(2020, 1, 1),
    pc.field("f").is_nan(),
    pc.field("i") + 1 == 2,
    ~(pc.field("i") == 1),
]


@pytest.mark.parametrize("filter", PYARROW, ids=str)
def test_pyarrow_expression_keeps_the_same_rows(tmp_path: Path, filter: pc.Expression) -> None:
    # Substrait, through which pylance passes expressions, does not know every type.
    table = every_type().select(["id", "i", "f", "s", "b", "date", "timestamp"])
    official.write_dataset(table, tmp_path / "t")
    theirs = official.dataset(tmp_path / "t").to_table(["id"], filter)["id"].to_pylist()
    assert lance.dataset(tmp_path / "t").to_table(["id"], filter)["id"].to_pylist() == theirs


COLUMNS: list[list[str] | dict[str, str]] = [
    ["i", "s"],
    ["st.x", "st.Y"],
    ["st", "st.x"],
    ["`with space`", "with space"],
    ["_rowid", "i"],
    ["i", "_rowaddr", "_rowoffset"],
    [],
    {"x": "i"},
    {"x": "i + 1", "id": "id"},
    {"x": "st.x"},
    {"x": "st"},
    {"x": "upper(s)"},
    {"x": "cast(i as string)"},
    {"x": "i8 + 1"},
    {"x": "u8 + 1"},
    {"x": "decimal + 1"},
    {"x": "decimal * 2"},
    {"x": "f * 2"},
    {"x": "g * 2"},
    {"x": "h"},
    {"x": "d"},
    {"x": "l[1]"},
    {"x": "ls[1]['q']"},
    {"x": "array_length(l)"},
    {"x": "i = 1"},
    {"x": "i IS NULL"},
    {"x": "coalesce(i, 0)"},
    {"x": "regexp_match(s, 'a')"},
    {"x": "date_part('year', ny)"},
    {"x": "_rowid", "y": "i"},
    {"_rowid": "_rowid", "x": "i"},
    {"größe": "größe"},
    {"x y": "i", "a.b": "i"},
    {"x": "`user-id` * 2"},
    {"x": "make_array(i, 1)"},
]


@pytest.mark.parametrize("columns", COLUMNS, ids=str)
def test_columns_are_the_same(path: Path, columns: list[str] | dict[str, str]) -> None:
    theirs = official.dataset(path).to_table(columns)
    assert_same_table(lance.dataset(path).to_table(columns), theirs)


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table of four versions with tags and a branch."""
    path = tmp_path_factory.mktemp("parity") / "lines.lance"
    versioned(path)
    return path


Refused = Callable[[Any, Path], object]
CALLS: dict[str, tuple[Refused, type[Exception]]] = {
    "missing table": (lambda m, p: m.dataset(p / "nosuch"), ValueError),
    "missing version": (lambda m, p: m.dataset(p, 99), ValueError),
    "missing tag": (lambda m, p: m.dataset(p, "nosuch"), ValueError),
    "missing version, checked out": (lambda m, p: m.dataset(p).checkout_version(99), OSError),
    "tag's version": (lambda m, p: m.dataset(p).tags.get_version("nosuch"), ValueError),
    "early time": (lambda m, p: m.dataset(p, asof=dt.datetime(1999, 1, 1)), ValueError),
    "no time": (lambda m, p: m.dataset(p, asof=5), TypeError),
    "unknown argument": (lambda m, p: m.dataset(p, nosuch=1), TypeError),
    "unknown column": (lambda m, p: m.dataset(p).to_table(["nosuch"]), ValueError),
    "column twice": (lambda m, p: m.dataset(p).to_table(["key", "key"]), ValueError),
    "columns as text": (lambda m, p: m.dataset(p).to_table("key"), TypeError),
    "unknown filter": (lambda m, p: m.dataset(p).to_table(filter="nosuch = 1"), ValueError),
    "negative limit": (lambda m, p: m.dataset(p).to_table(limit=-1), ValueError),
    "limit as text": (lambda m, p: m.dataset(p).to_table(limit="1"), TypeError),
    "unknown option": (lambda m, p: m.dataset(p).to_table(nosuch=1), TypeError),
    "unknown default": (
        lambda m, p: m.dataset(p, default_scan_options={"nosuch": 1}).to_table(),
        ValueError,
    ),
    "unknown order": (lambda m, p: m.dataset(p).to_table(order_by=["nosuch"]), ValueError),
    "row too far": (lambda m, p: m.dataset(p).take([99]), OSError),
    "negative row": (lambda m, p: m.dataset(p).take([-1]), OverflowError),
    "row as text": (lambda m, p: m.dataset(p).take(["1"]), TypeError),
    "sample too large": (lambda m, p: m.dataset(p).sample(99), ValueError),
    "no fragments": (lambda m, p: m.dataset(p).scanner(fragments=[1]), TypeError),
    "deleted rows without ids": (
        lambda m, p: m.dataset(p).scanner(include_deleted_rows=True).to_table(),
        ValueError,
    ),
    "fragments by filter": (lambda m, p: m.dataset(p).get_fragments("key = 1"), ValueError),
}


@pytest.mark.parametrize(("call", "error"), CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("module", [official, lance], ids=["pylance", "lancelake"])
def test_error_is_of_the_same_kind(
    lines: Path, module: Any, call: Refused, error: type[Exception]
) -> None:
    with pytest.raises(error):
        call(module, lines)


def test_every_release_reads_the_same_varied_table(official: Official, tmp_path: Path) -> None:
    table = varied(tmp_path / "t.lance")
    ds = lance.dataset(table.uri)
    for options in (
        {},
        {"filter": "st.x > 10", "with_row_id": True},
        {"columns": ["key", "n", "z", "_rowid", "_rowaddr"], "limit": 9, "offset": 5},
        {"columns": {"twice": "n * 2"}, "filter": "n IS NOT NULL"},
        {"order_by": [("a", False, True), ("key", True, False)], "limit": 7},
    ):
        asked = dict(options)
        if "order_by" in asked:
            asked["order_by"] = [lance.ColumnOrdering(*key) for key in options["order_by"]]
        assert_same_table(ds.to_table(**asked), official.read(table.uri, **options))


def test_shallow_clone_reads_the_files_of_its_source(tmp_path: Path) -> None:
    table = varied(tmp_path / "t.lance")
    clone = tmp_path / "clone.lance"
    official.dataset(table.uri).shallow_clone(str(clone), 9)
    assert_same_table(lance.dataset(clone).to_table(), table.rows)
    assert_same_table(lance.dataset(clone).take([26, 0]), table.rows.take([26, 0]))
    more = official.dataset(clone).to_table(limit=2)
    official.write_dataset(more, clone, mode="append")
    assert lance.dataset(clone).count_rows() == 29
    assert_same_table(lance.dataset(clone).to_table(), official.dataset(clone).to_table())
