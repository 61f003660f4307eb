"""Base paths, and their absence."""

from __future__ import annotations

from lancelake.format import fragment
from lancelake.proto import table_pb2


def test_a_base_without_a_name_has_none():
    assert fragment.BASE.decode(table_pb2.BasePath(id=1, path="p")).name is None


def test_an_empty_name_is_a_name():
    assert fragment.BASE.decode(table_pb2.BasePath(id=1, name="", path="p")).name == ""


def test_a_base_without_a_name_is_written_without_one():
    base = fragment.BASE.decode(table_pb2.BasePath(id=1, path="p"))

    assert not fragment.BASE.encode(base).HasField("name")
