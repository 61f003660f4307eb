"""JSON paths: the values they select, and invalid paths."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.errors import InvalidExpressionError
from lancelake.expr.json_functions import parse_path, select
from lancelake.format import jsonb
from lancelake.format.jsonb import JsonKind, JsonNode

DOCUMENT = {"a": {"b": [1, [2, "x"], {"c": None}]}, "b": 3, "c d": True}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
)


def node(value: Any) -> JsonNode:
    """Return a value as it is stored."""
    return JsonNode.root(jsonb.from_text(json.dumps(value)))


def found(path: str) -> list[Any]:
    """Return the values a path leads to."""
    return [json.loads(inner.text()) for inner in select(node(DOCUMENT), parse_path(path))]


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("$", [DOCUMENT]),
        ("", [DOCUMENT]),
        ("$.b", [3]),
        ("b", [3]),
        (" $.b ", [3]),
        ("$:b", [3]),
        ('$."c d"', [True]),
        ('$["c d"]', [True]),
        ("$.a.b[0]", [1]),
        ("$.a.b[last]", [{"c": None}]),
        ("$.a.b[last - 1][1]", ["x"]),
        ("$.a.b[0, 2]", [1, {"c": None}]),
        ("$.a.b[1 to last]", [[2, "x"], {"c": None}]),
        ("$.a.b[7]", []),
        ("$.a.b[-1]", []),
        ("$.a.b[*][*]", [1, 2, "x", {"c": None}]),
        ("$.a.*[1][0]", [2]),
        ("$.a.**", [DOCUMENT["a"], [1, [2, "x"], {"c": None}], 1, [2, "x"], 2, "x", {"c": None}]),
        ("$.b.c", []),
        ("$.b[0]", []),
        ("$.b[*]", [3]),
    ],
)
def test_a_path_leads_to_its_values(path: str, values: list[Any]) -> None:
    got = found(path)
    assert got[: len(values)] == values
    assert len(got) - len(values) in ((1,) if path == "$.a.**" else (0,))


@pytest.mark.parametrize(
    "path",
    ["$.", "$..a", "$k", "$ .a", "$['a']", "$.a[", "$.a]", "$[1.0]", "*", '"a"', "a b", "$[]"],
)
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(InvalidExpressionError, match="JSONPath"):
        parse_path(path)


@given(value=JSON)
def test_values_inside_are_the_same_on_their_own(value: Any) -> None:
    root = node(value)
    assert JsonNode.root(root.stored()).text() == root.text()
    for inner in (*root.items(), *root.members().values()):
        assert JsonNode.root(inner.stored()).text() == inner.text()
    if isinstance(value, list):
        assert [json.loads(item.text()) for item in root.items()] == value
    if isinstance(value, dict):
        assert {k: json.loads(v.text()) for k, v in root.members().items()} == value


def test_text_is_taken_for_json_too() -> None:
    root = JsonNode.root(b'{"a": [1]}')
    assert root.kind is JsonKind.OBJECT
    assert root.members()["a"].items()[0].text() == "1"
