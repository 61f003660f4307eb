"""Zone maps and bloom filters go back and forth between us and official releases."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lancelake.expr.condition import (
    Column,
    Comparison,
    IsNull,
    Leaf,
    Membership,
    Operator,
    TextMatch,
    TextTest,
)
from lancelake.index.kind import IndexKind
from lancelake.index.scalar.bloom_filter import BLOOM_FILTER
from lancelake.index.scalar.zone_map import ZONE_MAP
from tests.support.index_laws import NAN, NEGATIVE_NAN, POOLS, built, ensure_bounds
from tests.support.index_tables import ASK, add_index, entries_of, opened, rows_of
from tests.support.official import RELEASES, Official, OfficialPool

ROWS = 60
CYCLES: dict[str, pa.Array] = {
    "small": pa.array([-128, 0, 127, None, 5], pa.int8()),
    "n": pa.array([-1, 0, 1, None, 5, (1 << 63) - 1], pa.int64()),
    "u": pa.array([0, 1, 1 << 63, None], pa.uint64()),
    "f": pa.array([-1.5, -0.0, 1.0, 0.0, NAN, NEGATIVE_NAN, None, 2.5, float("inf")], pa.float64()),
    "g": pa.array([NAN, 1.0, None, -0.0], pa.float32()),
    "s": pa.array(["", "a", "abc", None, "b" * 300, "ä"]),
    "l": pa.array(["x", None, "xy"], pa.large_string()),
    "b": pa.array([b"", b"a", b"\xff\xff", None], pa.binary()),
    "d": pa.array([dt.date(2020, 1, 1), dt.date(2024, 2, 29), None], pa.date32()),
    "t": pa.array([-1, 0, 1_700_000_000_000_001, None], pa.timestamp("us")),
    "z": pa.array([1, None, 1_700_000_000_000_000_001], pa.timestamp("ns", "UTC")),
    "o": pa.array([True, None, False], pa.bool_()),
    "c": pa.array([Decimal("-2.50"), Decimal("0.00"), None], pa.decimal128(10, 2)),
    "k": pa.array([5, None, 7], pa.duration("ms")),
    "h": pa.array(np.array([1.0, NAN, -0.0], np.float16)),
    "x": pa.array([b"ab", None, b"zz"], pa.binary(2)),
    "w": pa.array([5, None, 7], pa.time64("us")),
}
# What a release cannot index, though it reads the index of another.
REFUSED_BY_4 = {"l", "b", "c", "k"}
KINDS = (ZONE_MAP, BLOOM_FILTER)
PARAMETERS = {"ZONEMAP": {"rows_per_zone": 4}, "BLOOMFILTER": {"number_of_items": 4}}
FILTERS = {
    "small": ["small = 5", "small IN (127, -128)", "small < 0", "small IS NULL"],
    "n": ["n = 5", "n IN (1, 7)", "n > 1 AND n < 6", "n IS NULL", "n IS NOT NULL", "n != 5"],
    "u": ["u = 1", "u > 5"],
    "f": ["f = 1.0", "f = 0.0", "f > 2.0", "f < 0.0", "f IN (2.5, 9.0)", "f IS NULL", "f >= 0.0"],
    "g": ["g = 1.0", "g > 0.5", "g < 0.5"],
    "s": ["s = 'abc'", "s IN ('a', 'ä')", "s > 'ab'", "s LIKE 'a%'", "starts_with(s, 'ä')"],
    "l": ["l = 'x'", "l > 'x'"],
    "b": ["b = x'61'"],
    "d": ["d = date '2024-02-29'", "d < date '2021-01-01'"],
    "t": ["t = timestamp '1970-01-01 00:00:00'", "t > timestamp '2000-01-01 00:00:00'"],
    "z": ["z > timestamp '2000-01-01 00:00:00'"],
    "o": ["o = true", "o = false", "o IS NULL"],
    "c": ["c IS NULL"],
    "x": ["x IS NULL"],
    "w": ["w IS NULL"],
    "h": ["h IS NULL"],
    "k": ["k IS NULL"],
}
# Official releases ask a zone map only what it answers without being negated.
SCANNED = {"n IS NOT NULL", "n != 5", "o = false"}
BUILD = """
from lance.indices import IndexConfig
result = {}
for column, kind, parameters in wanted:
    ds = lance.dataset(uri)
    config = IndexConfig(kind.lower(), parameters)
    ds.create_scalar_index(column, config, name=f"{column}_{kind.lower()}", replace=False)
ds = lance.dataset(uri)
for column, kind, _ in wanted:
    name = f"{column}_{kind.lower()}"
    result[name] = ds.stats.index_stats(name)["indices"]
"""


def table() -> pa.Table:
    columns: dict[str, Any] = {"id": pa.array(range(ROWS), pa.int64())}
    for name, cycle in CYCLES.items():
        # Every value is found in a run of rows, so that zones differ.
        places = [(row // 3) % len(cycle) for row in range(ROWS)]
        columns[name] = cycle.take(pa.array(places))
    return pa.table(columns)


def prepare(official: Official, uri: str) -> None:
    """Write a table of three fragments, of which rows are deleted."""
    official.write(uri, table(), max_rows_per_file=25, data_storage_version="2.0")
    official.delete(uri, "id % 7 = 0 OR id > 56")


def wanted(release: str) -> list[tuple[str, str, dict[str, Any]]]:
    found = []
    for kind in KINDS:
        for column, cycle in CYCLES.items():
            is_refused = release == "4.0.2" and (column == "k" or kind is ZONE_MAP)
            if kind.accepts(cycle.type) and not (is_refused and column in REFUSED_BY_4):
                found.append((column, kind.name, PARAMETERS[kind.name]))
    return found


def conditions(dtype: pa.DataType) -> Iterator[Leaf]:
    column = Column(path=("c",), dtype=dtype)
    yield IsNull(column=column)
    for value in POOLS.get(dtype, []):
        constant = pa.scalar(value, dtype)
        for operator in Operator:
            if operator in (Operator.EQUAL, Operator.NOT_EQUAL) or not pa.types.is_boolean(dtype):
                yield Comparison(column=column, operator=operator, value=constant)
        yield Membership(column=column, values=pa.array([value], dtype))
        if pa.types.is_string(dtype):
            yield TextMatch(column=column, test=TextTest.STARTS_WITH, text=value)


@pytest.mark.parametrize("release", RELEASES)
def test_what_a_release_builds_we_search(officials: OfficialPool, tmp_table: str, release: str):
    official = officials(release)
    prepare(official, tmp_table)
    shown = official.run(tmp_table, BUILD, wanted=wanted(release))
    kinds = {kind.name: kind for kind in KINDS}
    answered = 0
    for column, name, _ in wanted(release):
        rows = rows_of(tmp_table, column)
        index = f"{column}_{name.lower()}"
        segment = opened(tmp_table, kinds[name], index, rows.values.type)
        assert [dict(segment.statistics())] == shown[index]
        for leaf in conditions(rows.values.type):
            answer = segment.answer(leaf)
            if answer is not None:
                ensure_bounds(answer, leaf, rows)
                answered += 1
    assert answered > 200


@pytest.mark.parametrize("release", RELEASES)
def test_what_we_build_a_release_uses(officials: OfficialPool, tmp_table: str, release: str):
    official = officials(release)
    prepare(official, tmp_table)
    filters = []
    for column in CYCLES:
        add_index(tmp_table, ZONE_MAP, column, **PARAMETERS["ZONEMAP"])
        filters += FILTERS[column]
    for text, is_used, found, expected in official.run(tmp_table, ASK, filters=filters):
        assert found == expected, text
        assert is_used or text in SCANNED, text


@pytest.mark.parametrize("release", RELEASES)
def test_our_bloom_filters_are_used(officials: OfficialPool, tmp_table: str, release: str):
    official = officials(release)
    prepare(official, tmp_table)
    filters = []
    for column, cycle in CYCLES.items():
        if BLOOM_FILTER.accepts(cycle.type):
            add_index(tmp_table, BLOOM_FILTER, column, **PARAMETERS["BLOOMFILTER"])
            served = ("=", "IN", "IS NULL")
            filters += [f for f in FILTERS[column] if f.split(" ", 1)[1].startswith(served)]
    for text, is_used, found, expected in official.run(tmp_table, ASK, filters=filters):
        assert found == expected, text
        assert is_used, text


@pytest.mark.parametrize("release", RELEASES)
def test_our_bloom_filters_have_the_same_bytes(
    officials: OfficialPool, tmp_table: str, tmp_path: Path, release: str
):
    official = officials(release)
    prepare(official, tmp_table)
    blooms = [each for each in wanted(release) if each[1] == "BLOOMFILTER"]
    official.run(tmp_table, BUILD, wanted=blooms)
    for column, _, parameters in blooms:
        rows = rows_of(tmp_table, column)
        theirs = opened(tmp_table, BLOOM_FILTER, f"{column}_bloomfilter", rows.values.type)
        ours = BLOOM_FILTER.open(built(BLOOM_FILTER, rows, tmp_path, **parameters))
        mine, other = (pa.Table.from_batches(each.entries()) for each in (ours, theirs))
        assert mine.equals(other), column


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_release_extends_what_we_built(
    officials: OfficialPool, tmp_table: str, release: str, kind: IndexKind
):
    official = officials(release)
    prepare(official, tmp_table)
    name = add_index(tmp_table, kind, "n", **PARAMETERS[kind.name])
    official.append(tmp_table, table())
    official.run(tmp_table, "lance.dataset(uri).optimize.optimize_indices()\nresult = None")
    (entry,) = [e for e in entries_of(tmp_table) if e.name == name]
    assert sorted(entry.fragments() or ()) == [0, 1, 2, 3]
    rows = rows_of(tmp_table, "n")
    segment = opened(tmp_table, kind, name, pa.int64())
    for leaf in conditions(pa.int64()):
        answer = segment.answer(leaf)
        if answer is not None:
            ensure_bounds(answer, leaf, rows)
