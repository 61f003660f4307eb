"""Text of schemas, operations and documents."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.cli.commands.show import outline
from lancelake.cli.rows import logical_type_text, tree, type_text
from lancelake.describe import documents
from lancelake.describe.documents import document, flag_names, transaction_document
from lancelake.format import operations as ops
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.frozen import FrozenMap
from lancelake.format.operations import MapUpdate, Transaction
from tests.strategies.format_operations import BY_KIND, transactions
from tests.strategies.format_values import manifests


@pytest.mark.parametrize(
    ("logical_type", "text"),
    [
        ("int64", "int64"),
        ("fixed_size_list:float:768", "float[768]"),
        ("fixed_size_list:fixed_size_list:float:2:3", "float[2][3]"),
        ("fixed_size_binary:16", "binary[16]"),
        ("timestamp:us:-", "timestamp[us]"),
        ("timestamp:ns:+05:30", "timestamp[ns, +05:30]"),
        ("decimal:128:10:2", "decimal128(10, 2)"),
        ("dict:string:int32:false", "dictionary<string, int32>"),
        ("time64:ns", "time64[ns]"),
        ("date32:day", "date32"),
        ("list.struct", "list"),
        ("quaternion:\x1b", "quaternion:\\u001b"),
        ("decimal:128", "decimal:128"),
    ],
)
def test_type(logical_type: str, text: str) -> None:
    assert logical_type_text(logical_type) == text


@pytest.mark.parametrize(
    ("dtype", "text"),
    [(pa.json_(), "json"), (pa.uuid(), "binary[16] (arrow.uuid)"), (pa.list_(pa.int8()), "list")],
    ids=str,
)
def test_type_of_a_field(dtype: pa.DataType, text: str) -> None:
    (field,) = from_arrow(pa.schema([("x", dtype)])).fields
    assert type_text(field) == text


def test_tree_draws_lines() -> None:
    inner = pa.struct([("p", pa.int8()), ("q", pa.list_(pa.int8()))])
    schema = from_arrow(pa.schema([("a", inner), ("b", pa.int8())]))
    assert [name for _, name in tree(schema)] == ["a", "├ p", "└ q", "  └ item", "b"]


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        (ops.Restore(version=3), "to version 3"),  # type: ignore[arg-type]
        (ops.ReserveFragments(num_fragments=1), "1 fragment id"),
        (ops.UnknownOperation(tag=400, data=b""), "number 400"),
        (ops.Append(fragments=()), ""),
        (
            ops.UpdateConfig(
                config=MapUpdate(entries=FrozenMap({"a": "1", "b": None})),
                table_metadata=MapUpdate(entries=FrozenMap({"c": "2"})),
            ),
            "a, -b, metadata c",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_details_of(operation: ops.Operation, text: str) -> None:
    assert documents.details(operation) == text


@pytest.mark.parametrize("kind", BY_KIND, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_can_be_described_and_shown(kind: type[ops.Operation], data: st.DataObject) -> None:
    transaction: Transaction = data.draw(transactions(BY_KIND[kind]))
    documents.details(transaction.operation)
    body = transaction_document(transaction)
    assert body["operation"]["name"] == documents.name(transaction.operation)
    json.dumps(body, allow_nan=False)
    assert all("\n" not in line.plain for line in outline(body))


@given(manifests())
def test_every_manifest_is_a_document(manifest: object) -> None:
    json.dumps(document(manifest), allow_nan=False)


def test_unknown_flags_are_shown_by_number() -> None:
    assert flag_names(1 | 2 | 1 << 20) == ["deletion_files", "stable_row_ids", "0x100000"]


def test_an_operation_that_is_not_recorded_is_a_question_mark() -> None:
    assert documents.name(None) == "?"


def test_outline_leaves_out_what_is_empty_and_puts_dashes_beside_items() -> None:
    body = {"a": 1, "none": None, "list": [{"b": "x", "c": [1, 2]}, "y"], "empty": []}
    assert [line.plain for line in outline(body)] == [
        "a: 1",
        "list:",
        "  - b: x",
        "    c: [1, 2]",
        "  - y",
    ]
