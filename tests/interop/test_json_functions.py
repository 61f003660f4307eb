"""JSON functions return the results of pylance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lance as official
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lancelake.pylance as lance
from lancelake.errors import InvalidExpressionError
from tests.support.compare import assert_same_table

DOCUMENTS = [
    '{"a": 1, "b": "x", "c": [1, 2, "z"], "d": {"e": 1.5, "f": null, "g": true}}',
    '{"a": "7", "b": 2, "c": "no array"}',
    '{"a": null}',
    "[1, 2, 3]",
    '"text"',
    "5",
    "null",
    None,
    '{"a": 2.9, "b": "true", "c": []}',
    '{"a": "x1", "b": false, "c": [[1], {"k": 2}]}',
    '{"a.b": 1, "A": 3, "a": {"b": 2}, "ü": {"\\"": 4}}',
    '{"a": 18446744073709551615, "b": 1e3, "c": [null, 1.0, "1", true]}',
]
VALUES = [
    "1",
    "-1",
    "0",
    "2.9",
    "-2.9",
    "2.5",
    "-2.5",
    "0.5",
    "-0.5",
    "0.49999999999999994",
    "1000.0",
    "1e30",
    "1e19",
    "9007199254740993",
    "0.0",
    "-0.0",
    "18446744073709551615",
    "9223372036854775807",
    "-9223372036854775808",
    "true",
    "false",
    "null",
    "[]",
    "{}",
    "[1]",
    '{"k":1}',
    '"7"',
    '"-7"',
    '"+7"',
    '"2.5"',
    '".5"',
    '"5."',
    '"1e3"',
    '"1e"',
    '"e5"',
    '"x1"',
    '""',
    '"0x10"',
    '"1_0"',
    '"7.0"',
    '"nan"',
    '"inf"',
    '"Infinity"',
    '"-inf"',
    '"1e400"',
    '"9223372036854775808"',
    '"true"',
    '"TRUE"',
    '"false"',
    '"Yes"',
    '"no"',
    '"on"',
    '"t"',
    '"1"',
    '"0"',
]


def table(path: Path, documents: list[str | None]) -> Path:
    """Write documents into a table."""
    column = pa.array(documents, pa.json_(pa.utf8()))
    rows = pa.table([pa.array(range(len(documents))), column], names=["i", "j"])
    official.write_dataset(rows, path, data_storage_version="2.1")
    return path


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table of documents of every shape."""
    return table(tmp_path_factory.mktemp("json") / "t.lance", DOCUMENTS)


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table with a value in every document."""
    found = [f'{{"k": {value}}}' for value in VALUES]
    return table(tmp_path_factory.mktemp("json") / "v.lance", [*found])


PATHS = """
$
$.a
a
a.b
$.a.b
$.d.e
$.d.f
$.nothing
$.c[0]
$.c[last]
$.c[last - 1]
$.c[0, 2]
$.c[-1]
$.c[ 1 ]
$.c[*]
$.c[*].k
$[0]
$[*]
$.*
$.*[0]
$.**
$["a.b"]
$."a.b"
$:a
$.ü."\\""
$.A
1
"""
CALLS = [
    *[f"json_extract(j, '{path}')" for path in PATHS.splitlines()],
    *[f"json_exists(j, '{path}')" for path in PATHS.splitlines()],
    *[f"json_array_length(j, '{path}')" for path in PATHS.splitlines()],
    *[f"json_extract_with_type(j, '{path}')" for path in ("$.a", "$.d", "$.c", "$.nothing")],
    *[f"json_array_contains(j, '$.c', '{item}')" for item in ("z", "1", "1.0", "null", "true")],
    *[f"json_array_contains(j, '$.c[*]', '{item}')" for item in ("1", "2", '{"k":2}')],
    "json_array_contains(j, '$', 2)",
    *[f"json_get(j, '{key}')" for key in ("a", "0", "+1", "-1", "01", "a.b", "$.a", "d", "")],
    "json_get(j, 1)",
    "json_get(json_get(j, 'd'), 'e')",
    "json_get_string(j, 'b')",
    "json_get_string(j, '0')",
    "json_get_string(json_get(j, 'd'), 'f')",
    "json_get_int(j, '1')",
    "json_get_int(j, cast(i as string))",
    "json_get_bool(json_get(j, 'd'), 'g')",
    "json_extract(j, NULL)",
    "json_exists(j, NULL)",
    "json_get_float(j, NULL)",
    "json_array_contains(j, '$.c', NULL)",
    "json_extract_with_type(j, NULL)",
]


@pytest.mark.parametrize("call", CALLS)
def test_columns_are_the_same(documents: Path, call: str) -> None:
    ours = lance.dataset(documents).to_table(columns={"x": call})
    assert_same_table(ours, official.dataset(documents).to_table(columns={"x": call}))


FILTERS = """
json_extract(j, '$.a') = '1'
json_exists(j, '$.a')
NOT json_exists(j, '$.a')
json_array_contains(j, '$.c', 'z')
json_get_string(j, 'b') = 'x' OR i = 3
json_array_length(j, '$.c') > 1 AND i < 10
json_extract(j, '$.a') IS NULL
j IS NULL
""".strip().splitlines()


@pytest.mark.parametrize("condition", FILTERS)
def test_filters_keep_the_same_rows(documents: Path, condition: str) -> None:
    ours = lance.dataset(documents).to_table(columns=["i"], filter=condition)
    assert_same_table(ours, official.dataset(documents).to_table(columns=["i"], filter=condition))


@pytest.mark.parametrize("target", ["string", "int", "float", "bool"])
@pytest.mark.parametrize("row", range(len(VALUES)), ids=VALUES)
def test_values_are_converted_alike(values: Path, target: str, row: int) -> None:
    call = f"json_get_{target}(j, 'k')"

    def outcome(module: Any) -> Any:
        try:
            found = module.dataset(values).to_table(columns={"x": call}, filter=f"i = {row}")
        except ValueError:
            return "refused"
        return repr(found.to_pydict())

    assert outcome(lance) == outcome(official)


REFUSED = """
json_extract(j, '$.')
json_extract(j, '$..a')
json_extract(j, '$k')
json_extract(j, '$ . a')
json_extract(j, '$[''a'']')
json_extract(j, '$.c[0')
json_extract(j, '$.c]')
json_extract(j, '$.c[1.0]')
json_extract(j, '*')
json_extract(j, '"a"')
json_extract(j, '$.a.size()')
json_exists(j, 'a b')
json_array_length(j)
json_extract(j)
json_get_int(i, 'a')
json_nothing(j, 'a')
json_extract('{"a": 1}', '$.a')
""".strip().splitlines()


@pytest.mark.parametrize("call", REFUSED)
def test_what_has_no_meaning_is_refused(documents: Path, call: str) -> None:
    for module in (official, lance):
        with pytest.raises(ValueError, match=r"(?s)."):
            module.dataset(documents).to_table(columns={"x": call})


def test_an_error_says_which_value_it_was(documents: Path) -> None:
    with pytest.raises(InvalidExpressionError, match=r'JSON value "x1" cannot be converted to int'):
        lance.dataset(documents).to_table(columns={"x": "json_get_int(j, 'a')"})


def test_ranges_of_items_are_found(documents: Path) -> None:
    column = {"x": "json_extract(j, '$.c[last - 1 to last]')"}
    found = lance.dataset(documents).to_table(columns=column, filter="i = 0")
    assert found.column("x").to_pylist() == ['[2,"z"]']


def test_text_is_found_by_its_characters(tmp_path: Path) -> None:
    path = table(tmp_path / "t.lance", ['["say \\"hi\\""]'])
    column = {"x": "json_array_contains(j, '$', 'say \"hi\"')"}
    assert lance.dataset(path).to_table(columns=column).to_pydict() == {"x": [True]}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text('ab"\\ü', max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["a", "b", "c d", ""]), inner, max_size=3)
    ),
    max_leaves=8,
)
STEPS = st.lists(
    st.sampled_from([".a", ".b", '."c d"', '["b"]', "[0]", "[1]", "[last]", "[*]", ".*", ".**"]),
    max_size=3,
)


@settings(max_examples=30, deadline=None)
@given(found=st.lists(JSON, min_size=1, max_size=6), steps=STEPS)
def test_paths_lead_to_the_same_values(
    tmp_path_factory: pytest.TempPathFactory, found: list[Any], steps: list[str]
) -> None:
    path = table(tmp_path_factory.mktemp("drawn") / "t.lance", [json.dumps(v) for v in found])
    text = "$" + "".join(steps)
    columns = {f: f"{f}(j, '{text}')" for f in ("json_extract", "json_exists", "json_array_length")}
    ours = lance.dataset(path).to_table(columns=columns)
    assert_same_table(ours, official.dataset(path).to_table(columns=columns))
