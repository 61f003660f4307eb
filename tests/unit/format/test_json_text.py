"""The JSON dialect of Lance writers: what pylance 4.0.2 and 14.0.2 make of odd texts."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.errors import SchemaMismatchError
from lancelake.format.json_text import parse_extended, parse_standard

ACCEPTED = [
    ("", None),
    ("  ", None),
    ("Infinity", math.inf),
    ("-iNFINITY", -math.inf),
    ("tRUe", True),
    ("FALSE", False),
    ("nUll", None),
    ("+1", 1),
    ("007", 7),
    ("1.", 1),
    ("0.", 0),
    (".5", 0.5),
    ("1.e5", 100000.0),
    ("-.5e1", -5.0),
    ("0x1F", 31),
    ("-0X1f", -31),
    ("0x1F.8", 31.5),
    ("9" * 5000, math.inf),
    ("[,]", [None, None]),
    ("[1,,2]", [1, None, 2]),
    ("[1, ]", [1, None]),
    ("{ a : 1 }", {"a": 1}),
    ("{$a_1é:1}", {"$a_1é": 1}),
    ("{'a':'b\"c'}", {"a": 'b"c'}),
    ("{null:1}", {"null": 1}),
    ("\\n\\x0C\f1\\t", 1),
    ('"a\nb"', "a\nb"),
    (r'"\u{00e9}"', "é"),
    (r'"\ud83d\ude00"', "😀"),
    (r'"\u{d83d}\u{de00}"', "😀"),
    (r'"\ud83d"', r"\ud83d"),
    (r'"\uDE00x"', r"\uDE00x"),
    (r'"\ud83d\u0041"', r"\ud83d\u0041"),
    (r'"\ud83d\ud83d\ude00"', r"\ud83d\ud83d\ude00"),
    (r'{"a":[{"b":[]},{}],"c":[[],[[1]]]}', {"a": [{"b": []}, {}], "c": [[], [[1]]]}),
]

REFUSED = [
    '{"a":1,"a":2}',
    r'{"a":1,"\u0061":2}',
    '{"a":1,}',
    "{1:2}",
    "{a-b:1}",
    '{"a" 1}',
    '{"a":}',
    '{"a"',
    "[1 2]",
    "[1}",
    "[",
    "[1]]",
    '"a',
    r'"\q"',
    r'"\'"',
    r'"\u12"',
    r'"\uzzzz"',
    r'"\u{1F600}"',
    "tru",
    "nullx",
    "undefined",
    "inf",
    "-NaN",
    "1e",
    "-",
    "+",
    ".",
    "0x",
    "0x1.",
    "00x1",
    "1_0",
    "1 2",
    "1.5.2",
    "// c\n1",
    "\u00a01",
    "\ufeff1",
    "0x" + "f" * 33,
    "[" * 2001 + "]" * 2001,
]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text() | st.floats(width=64),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


@pytest.mark.parametrize(("text", "value"), ACCEPTED)
def test_texts_beyond_json_have_their_official_value(text: str, value: object) -> None:
    assert parse_extended(text) == value


@pytest.mark.parametrize("text", ["NaN", "+nan"])
def test_nan_is_a_number(text: str) -> None:
    value = parse_extended(text)
    assert isinstance(value, float)
    assert math.isnan(value)


@pytest.mark.parametrize("text", REFUSED)
def test_texts_that_official_writers_refuse_are_refused(text: str) -> None:
    with pytest.raises(SchemaMismatchError):
        parse_extended(text)


@given(json_values)
def test_both_parsers_agree_on_json(value: object) -> None:
    text = json.dumps(value)
    assert repr(parse_extended(text)) == repr(parse_standard(text))


def test_the_standard_parser_refuses_a_second_member_of_one_name() -> None:
    with pytest.raises(ValueError, match="duplicate"):
        parse_standard('{"a":1,"a":2}')
