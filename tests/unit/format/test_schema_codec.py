"""Schema trees and flat field lists convert without loss."""

from __future__ import annotations

import pytest
from google.protobuf.message import Message

from lancelake.errors import CorruptTableError, UnsupportedError
from lancelake.format.schema import MAX_DEPTH, Encoding, decode_schema, encode_schema
from lancelake.proto import file_pb2, transaction_pb2
from tests.unit.format.golden.files import RELEASES, manifest, read


def message(name: str, field_id: int, parent_id: int = -1, **rest: object) -> file_pb2.Field:
    values: dict[str, object] = {"logical_type": "int32", **rest}
    return file_pb2.Field(name=name, id=field_id, parent_id=parent_id, **values)


def plain(messages: list[Message]) -> list[bytes]:
    return [m.SerializeToString(deterministic=True) for m in messages]


def test_children_are_put_below_their_parent():
    schema = decode_schema([message("a", 0), message("x", 1, 0), message("b", 2)], {})

    assert [(f.name, [c.name for c in f.children]) for f in schema.fields] == [
        ("a", ["x"]),
        ("b", []),
    ]


def test_children_may_come_apart_from_their_parent():
    fields = [message("a", 0), message("b", 1), message("x", 2, 0), message("y", 3, 0)]

    assert [c.name for c in decode_schema(fields, {}).fields[0].children] == ["x", "y"]


@pytest.mark.parametrize(
    "fields",
    [
        [message("x", 1, 0), message("a", 0)],
        [message("a", 0, 0)],
        [message("a", 0, 7)],
        [message("a", 0, -2)],
    ],
)
def test_a_child_before_its_parent_is_damage(fields):
    with pytest.raises(CorruptTableError):
        decode_schema(fields, {})


def test_a_tree_that_is_too_deep_is_refused():
    depth = MAX_DEPTH + 2
    fields = [message("f", i, i - 1, logical_type="struct") for i in range(depth)]

    with pytest.raises(UnsupportedError):
        decode_schema(fields, {})


def test_the_extension_name_wins_over_the_metadata():
    field = message("a", 0, extension_name="new", metadata={"ARROW:extension:name": b"old"})

    assert decode_schema([field], {}).fields[0].extension_name == "new"


def test_an_extension_name_that_is_not_text_is_damage():
    field = message("a", 0, metadata={"ARROW:extension:name": b"\xff"})

    with pytest.raises(CorruptTableError):
        decode_schema([field], {})


def test_an_encoding_of_a_newer_writer_counts_as_none():
    field = message("a", 0)
    field.MergeFromString(b"\x38\x63")  # encoding 99

    assert decode_schema([field], {}).fields[0].encoding is Encoding.NONE


def test_the_extension_name_is_written_twice():
    source = message("a", 0, metadata={"ARROW:extension:name": b"x.y"})
    (written,) = encode_schema(decode_schema([source], {}))

    assert (written.extension_name, dict(written.metadata)) == (
        "x.y",
        {"ARROW:extension:name": b"x.y"},
    )


@pytest.mark.parametrize("release", RELEASES)
def test_fields_by_official_releases_are_written_as_they_were(release):
    transaction = transaction_pb2.Transaction.FromString(read(release, "create.txn"))
    source = list(transaction.overwrite.schema)

    assert plain(encode_schema(decode_schema(source, {}))) == plain(source)


@pytest.mark.parametrize("release", RELEASES)
def test_ids_of_official_releases_count_from_0_in_pre_order(release):
    schema = manifest(release, "create").manifest.schema

    assert [(f.id, f.parent_id) for f in schema.walk()] == [
        (0, -1),
        (1, -1),
        (2, -1),
        (3, 2),
        (4, 2),
        (5, -1),
        (6, 5),
        (7, -1),
        (8, -1),
    ]
