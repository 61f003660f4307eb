"""Base paths, and their absence."""

from __future__ import annotations

from lancelake.format import bases
from lancelake.proto import table_pb2


def test_a_base_without_a_name_has_none():
    assert bases.decode(table_pb2.BasePath(id=1, path="p")).name is None


def test_an_empty_name_is_a_name():
    assert bases.decode(table_pb2.BasePath(id=1, name="", path="p")).name == ""


def test_a_base_without_a_name_is_written_without_one():
    base = bases.decode(table_pb2.BasePath(id=1, path="p"))

    assert not bases.encode(base).HasField("name")
