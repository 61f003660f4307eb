"""Unknown fields of newer writers are separated and restored."""

from __future__ import annotations

import pytest

from lancelake.errors import CorruptTableError
from lancelake.format.frozen import parse, restore_unknown, unknown_bytes
from lancelake.proto import table_pb2

STRANGER = b"\xa2\x06\x02hi"  # field 100, two bytes


def known() -> table_pb2.BasePath:
    return table_pb2.BasePath(id=3, path="p")


def test_a_message_without_strangers_has_no_unknown_bytes():
    assert unknown_bytes(known()) == b""


def test_unknown_bytes_are_the_fields_without_a_name_here():
    message = table_pb2.BasePath()
    message.ParseFromString(known().SerializeToString() + STRANGER)

    assert unknown_bytes(message) == STRANGER


def test_unknown_bytes_leave_the_message_alone():
    data = known().SerializeToString() + STRANGER
    message = table_pb2.BasePath()
    message.ParseFromString(data)
    unknown_bytes(message)

    assert message.SerializeToString() == data


def test_restored_fields_are_written():
    message = known()
    restore_unknown(message, STRANGER)

    assert message.SerializeToString() == known().SerializeToString() + STRANGER


def test_strangers_of_a_child_are_not_those_of_its_parent():
    fragment = table_pb2.DataFragment(files=[table_pb2.DataFile(path="p")])
    fragment.files[0].MergeFromString(STRANGER)

    assert unknown_bytes(fragment) == b""


def test_damaged_bytes_are_reported_with_what_they_were_to_be():
    with pytest.raises(CorruptTableError, match="base path cannot be decoded"):
        parse(table_pb2.BasePath(), b"\xff\xff\xff", what="base path")
