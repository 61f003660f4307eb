"""The end of a legacy file says where its pages are, or that it is damaged."""

from __future__ import annotations

import struct
from dataclasses import replace

import pyarrow as pa
import pytest

from lancelake.data.legacy import legacy_layout
from lancelake.errors import CorruptTableError, InvalidRequestError
from lancelake.format.ids import TOMBSTONE, FieldId
from lancelake.proto import file_pb2
from tests.support.legacy_tables import LegacyTable, MemorySource, legacy_table

GROUPS = [
    pa.record_batch({"a": [1, 2, 3], "b": ["x", "y", "z"]}),
    pa.record_batch({"a": [4], "b": ["w"]}),
]


def with_end(
    table: LegacyTable, *, offsets: list[int], table_at: int = 0, footer: tuple[int, int] = (0, 2)
) -> MemorySource:
    """Put another end behind the pages."""
    body = file_pb2.Metadata(batch_offsets=offsets, page_table_position=table_at)
    encoded = body.SerializeToString()
    end = struct.pack("<I", len(encoded)) + encoded
    end += struct.pack("<qHH4s", len(table.data), *footer, b"LANC")
    return MemorySource(table.data + end)


def test_rows_are_counted_by_group() -> None:
    table = legacy_table(GROUPS)
    found = legacy_layout.load(table.source(), table.file, [])
    assert found.row_offsets.tolist() == [0, 3, 4]
    assert found.num_rows == 4


def test_pages_are_found_by_field_id() -> None:
    table = legacy_table(GROUPS, first_id=7)
    found = legacy_layout.load(table.source(), table.file, [FieldId(8)])
    assert list(found.pages) == [8]
    assert found.pages[FieldId(8)].lengths.tolist() == [3, 1]


def test_a_small_file_is_opened_with_one_read() -> None:
    table = legacy_table(GROUPS)
    source = table.source()
    legacy_layout.load(source, table.file, table.file.fields)
    assert source.reads == [(0, len(table.data))]


def test_a_page_table_before_the_tail_takes_one_more_read() -> None:
    table = legacy_table([pa.record_batch({"a": [1], "b": [2]})] * 4000)
    source = table.source()
    found = legacy_layout.load(source, table.file, [FieldId(0)])
    assert found.pages[FieldId(0)].lengths.tolist() == [1] * 4000
    assert len(source.reads) == 2


def test_a_file_without_groups_has_no_rows() -> None:
    table = legacy_table(GROUPS)
    found = legacy_layout.load(with_end(table, offsets=[]), table.file, [FieldId(0)])
    assert found.num_rows == 0


def test_the_size_recorded_for_the_file_is_not_used() -> None:
    table = legacy_table(GROUPS)
    wrong = replace(table.file, file_size_bytes=3)
    assert legacy_layout.load(table.source(), wrong, []).size_bytes == len(table.data)


def test_a_field_that_the_file_does_not_hold_is_refused() -> None:
    table = legacy_table(GROUPS)
    with pytest.raises(InvalidRequestError, match="field 2"):
        legacy_layout.load(table.source(), table.file, [FieldId(2)])


@pytest.mark.parametrize("offsets", [[0, 3, 2], [1, 3], [-1, 3], [0, -5]])
def test_row_offsets_that_do_not_ascend_are_damage(offsets: list[int]) -> None:
    table = legacy_table(GROUPS)
    with pytest.raises(CorruptTableError, match="ascend"):
        legacy_layout.load(with_end(table, offsets=offsets), table.file, [])


@pytest.mark.parametrize("position", [10**6, 2**63, 2**64 - 1])
def test_a_page_table_outside_the_file_is_damage(position: int) -> None:
    table = legacy_table(GROUPS)
    source = with_end(table, offsets=[0, 3, 4], table_at=position)
    with pytest.raises(CorruptTableError):
        legacy_layout.load(source, table.file, [FieldId(0)])


@pytest.mark.parametrize("footer", [(0, 3), (2, 1), (1, 0)])
def test_a_file_of_another_version_is_not_a_legacy_file(footer: tuple[int, int]) -> None:
    table = legacy_table(GROUPS)
    with pytest.raises(CorruptTableError, match="legacy"):
        legacy_layout.load(with_end(table, offsets=[0], footer=footer), table.file, [])


@pytest.mark.parametrize("data", [b"", b"LANC", bytes(40)])
def test_a_file_without_a_footer_is_damage(data: bytes) -> None:
    table = legacy_table(GROUPS)
    with pytest.raises(CorruptTableError):
        legacy_layout.load(MemorySource(data), table.file, [])


@pytest.mark.parametrize("fields", [(), (TOMBSTONE, FieldId(1))])
def test_pages_cannot_be_counted_from_a_dead_field(fields: tuple[FieldId, ...]) -> None:
    table = legacy_table(GROUPS)
    with pytest.raises(CorruptTableError, match="first field"):
        legacy_layout.load(table.source(), replace(table.file, fields=fields), [])
