"""Binary JSON: the expected bytes and texts come from pylance 4.0.2 and 14.0.2."""

from __future__ import annotations

import json
import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.errors import CorruptTableError, SchemaMismatchError, UnsupportedError
from lancelake.format import jsonb

OFFICIAL = [
    ('{"k":1}', "4000000110000001200000026b5001", '{"k":1}'),
    ("1", "20000000200000025001", "1"),
    ("-1", "200000002000000240ff", "-1"),
    ("0", "200000002000000100", "0"),
    ("-0", "200000002000000100", "0"),
    ("256", "2000000020000003500100", "256"),
    ("-128", "20000000200000024080", "-128"),
    ("-129", "200000002000000340ff7f", "-129"),
    ("65536", "20000000200000055000010000", "65536"),
    ("18446744073709551615", "200000002000000950ffffffffffffffff", "18446744073709551615"),
    ("18446744073709551616", "20000000200000096043f0000000000000", "1.8446744073709552e+19"),
    ("-9223372036854775808", "2000000020000009408000000000000000", "-9223372036854775808"),
    ("-9223372036854775809", "200000002000000960c3e0000000000000", "-9.223372036854776e+18"),
    ("1.0", "2000000020000009603ff0000000000000", "1.0"),
    ("-0.0", "2000000020000009608000000000000000", "-0.0"),
    ("1e15", "200000002000000960430c6bf526340000", "1000000000000000.0"),
    ("1e16", "2000000020000009604341c37937e08000", "1e+16"),
    ("1e-5", "2000000020000009603ee4f8b588e368f1", "0.00001"),
    ("1e-7", "2000000020000009603e7ad7f29abcaf48", "1e-7"),
    ("1E400", "200000002000000120", "null"),
    ("-1e999", "200000002000000130", "null"),
    ("9" * 400, "200000002000000120", "null"),
    ("true", "2000000040000000", "true"),
    ("false", "2000000030000000", "false"),
    ("null", "2000000000000000", "null"),
    ('""', "2000000010000000", '""'),
    (r'"\u00e9\n\t\"\\\/"', "2000000010000007c3a90a09225c2f", '"é\\n\\t\\"\\\\/"'),
    (r'"\u0001\b\f\u007f"', "200000001000000401080c7f", '"\\u0001\\b\\f\x7f"'),
    (r'"\ud83d\ude00"', "2000000010000004f09f9880", '"😀"'),
    ("[]", "80000000", "[]"),
    ("{}", "40000000", "{}"),
    ("[1, 2 , [3]]", "8000000320000002200000025000000a5001500280000001200000025003", "[1,2,[3]]"),
    (
        ' { "b" : 1 , "a" : [ {} , [ ] ] } ',
        "4000000210000001100000015000001420000002616280000002500000045000000440000000800000005001",
        '{"a":[{},[]],"b":1}',
    ),
    ('{"é":1,"z":2}', "40000002100000011000000220000002200000027ac3a950025001", '{"z":2,"é":1}'),
    ('{"a":null}', "40000001100000010000000061", '{"a":null}'),
]

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


def scalar(entry: int, data: bytes) -> bytes:
    return struct.pack(">II", 0x20000000, entry | len(data)) + data


@pytest.mark.parametrize(("text", "data"), [(t, b) for t, b, _ in OFFICIAL])
def test_standard_json_gets_the_official_bytes(text: str, data: str) -> None:
    assert jsonb.from_text(text).hex() == data


@pytest.mark.parametrize(("data", "printed"), [(b, p) for _, b, p in OFFICIAL])
def test_bytes_get_the_official_text(data: str, printed: str) -> None:
    assert jsonb.to_text(bytes.fromhex(data)) == printed


def test_small_negative_numbers_are_printed_without_exponent() -> None:
    assert jsonb.to_text(jsonb.from_text("-1.5e-5")) == "-0.000015"


def test_text_with_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(SchemaMismatchError):
        jsonb.from_text('"\ud83d"')


@given(json_values)
def test_a_value_survives_both_ways(value: object) -> None:
    assert json.loads(jsonb.to_text(jsonb.from_text(json.dumps(value)))) == value


@given(json_values)
def test_printing_and_parsing_again_changes_no_byte(value: object) -> None:
    data = jsonb.from_text(json.dumps(value))
    assert jsonb.from_text(jsonb.to_text(data)) == data


@pytest.mark.parametrize("text", ['{"k":1}', "[1,2]", '"abcdefgh"', "123456789", " 1", "hello"])
def test_a_value_stored_as_text_is_that_text(text: str) -> None:
    assert jsonb.to_text(text.encode()) == text


def test_no_bytes_are_null() -> None:
    assert jsonb.to_text(b"") == "null"


@pytest.mark.parametrize(
    "data",
    [
        bytes.fromhex("20000000"),
        bytes.fromhex("200000002000000250"),
        bytes.fromhex("2000000020000000"),
        bytes.fromhex("2000000010000001ff"),
        bytes.fromhex("2000000070000000"),
        bytes.fromhex("200000005000000480000000"),
        bytes.fromhex("8000000220000002"),
        bytes.fromhex("8000000150000004"),
        bytes.fromhex("8000000150000003800000"),
        bytes.fromhex("40000001200000022000000250015002"),
        bytes.fromhex("4000000110000009200000026b5001"),
        bytes.fromhex("00000000200000025001"),
        scalar(0x20000000, bytes.fromhex("40000001")),
        scalar(0x20000000, bytes.fromhex("603ff0")),
        scalar(0x20000000, bytes.fromhex("99")),
    ],
    ids=bytes.hex,
)
def test_malformed_bytes_are_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptTableError):
        jsonb.to_text(data)


@given(st.binary(max_size=80), st.sampled_from(["", "20000000", "80000002", "40000001"]))
def test_any_bytes_are_text_or_a_named_error(data: bytes, header: str) -> None:
    try:
        text = jsonb.to_text(bytes.fromhex(header) + data)
    except (CorruptTableError, UnsupportedError):
        return
    assert isinstance(text, str)


@pytest.mark.parametrize(
    "data",
    [
        scalar(0x20000000, b"\x70" + struct.pack(">q", 12345) + b"\x02"),
        scalar(0x60000000, b"\x10" + struct.pack(">i", 19000)),
    ],
    ids=["decimal", "date"],
)
def test_values_beyond_json_are_named_as_unsupported(data: bytes) -> None:
    with pytest.raises(UnsupportedError):
        jsonb.to_text(data)


def test_deeper_nesting_than_the_interpreter_allows_is_printed() -> None:
    depth = 20_000
    headers = [
        struct.pack(">II", 0x80000001, 0x50000000 | (4 + 8 * (depth - k - 1))) for k in range(depth)
    ]
    text = jsonb.to_text(b"".join(headers) + bytes.fromhex("80000000"))
    assert text == "[" * (depth + 1) + "]" * (depth + 1)


def test_nesting_up_to_the_limit_survives_both_ways() -> None:
    text = '{"a":' * 2000 + "1" + "}" * 2000
    assert jsonb.to_text(jsonb.from_text(text)) == text


def test_arrays_keep_their_nulls() -> None:
    texts = pa.array(['{"b":1,"a":2}', None, "[]"])
    printed = jsonb.decode_array(jsonb.encode_array(texts))
    assert printed.to_pylist() == ['{"a":2,"b":1}', None, "[]"]


def test_arrays_have_the_storage_types_of_both_sides() -> None:
    data = jsonb.encode_array(pa.array(["1"], pa.large_string()))
    assert (data.type, jsonb.decode_array(data).type) == (pa.large_binary(), pa.string())


def test_arrow_json_arrays_are_encoded() -> None:
    array = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["1", None]))
    assert jsonb.encode_array(array).to_pylist() == [jsonb.from_text("1"), None]
