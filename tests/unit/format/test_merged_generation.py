"""Progress of MemWAL regions by uuid."""

from __future__ import annotations

import uuid

import pytest

from lancelake.errors import CorruptTableError
from lancelake.format.index_meta import MERGED_GENERATION, MergedGeneration
from lancelake.proto import table_pb2


def test_a_region_is_named_by_the_bytes_of_its_uuid():
    mark = MergedGeneration(region_id=uuid.UUID(int=7), generation=3)

    assert MERGED_GENERATION.encode(mark).region_id.uuid == b"\0" * 15 + b"\7"


def test_a_mark_is_read_as_it_was_written():
    mark = MergedGeneration(region_id=uuid.UUID(int=7), generation=3)

    assert MERGED_GENERATION.decode(MERGED_GENERATION.encode(mark)) == mark


def test_a_mark_without_a_region_is_damage():
    with pytest.raises(CorruptTableError):
        MERGED_GENERATION.decode(table_pb2.MergedGeneration(generation=1))
