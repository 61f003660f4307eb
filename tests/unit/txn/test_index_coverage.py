from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from lancelake.format.arrow_schema import from_arrow
from lancelake.format.ids import FieldId, Version
from lancelake.format.index_meta import FRAGMENT_REUSE, IndexDetails, IndexMetadata
from lancelake.format.schema import Schema
from lancelake.proto import table_pb2
from lancelake.txn import overlap
from lancelake.txn.conflict_matrix import FIRST, KEY, SECOND, TEXT, VALUE, index, mem_wal
from lancelake.txn.fragments import follow_moves, has_hidden_moves
from tests.unit.txn.making import covered, table

SCHEMA = table().manifest.schema
FRAGMENTS = table().manifest.fragments


def segment(unique: str, *fragments: int, version: int = 1) -> IndexMetadata:
    entry = index(unique, VALUE, *(overlap.FragmentId(f) for f in fragments))
    return replace(entry, name="i", dataset_version=Version(version))


def kept(*entries: IndexMetadata, schema: Schema = SCHEMA) -> list[IndexMetadata]:
    return list(overlap.retained(entries, schema, [f.id for f in FRAGMENTS]))


def test_an_index_on_a_column_that_is_gone_goes() -> None:
    schema = replace(SCHEMA, fields=SCHEMA.fields[:2])
    stays = index("v", VALUE, FIRST)
    assert kept(stays, index("t", TEXT, FIRST), schema=schema) == [stays]


def test_segments_that_cover_nothing_go() -> None:
    one = segment("a", FIRST)
    assert kept(one, segment("b", 7)) == [one]


def test_of_segments_that_all_cover_nothing_the_oldest_stays() -> None:
    old = segment("b", 7, version=1)
    assert kept(segment("a", 8, version=2), old) == [old]


def test_a_single_segment_stays() -> None:
    one = segment("a", 7)
    assert kept(one) == [one]


def test_a_segment_of_unknown_coverage_stays() -> None:
    entries = [replace(segment("a"), fragment_bitmap=b""), segment("b", FIRST)]
    assert kept(*entries) == entries


def test_system_entries_stay() -> None:
    entries = [mem_wal(), reuse([FIRST], [7])]
    assert kept(*entries) == entries


def test_segments_stay_when_moves_are_recorded_in_a_file() -> None:
    details = table_pb2.FragmentReuseIndexDetails()
    details.external.path = "details.binpb"
    hidden = _reuse(details)
    assert has_hidden_moves((hidden,))
    entries = [segment("a", 7), segment("b", FIRST), hidden]
    assert kept(*entries) == entries


@pytest.mark.parametrize(
    ("kind", "version", "held"),
    [
        ("/lance.table.BTreeIndexDetails", 0, False),
        ("/lance.table.BTreeIndexDetails", 1, True),
        ("/lance.table.ZoneMapIndexDetails", 0, True),
        ("/lance.index.pb.BloomFilterIndexDetails", 0, True),
        ("/lance.table.BitmapIndexDetails", 0, False),
    ],
)
def test_some_kinds_hold_addresses(kind: str, version: int, held: bool) -> None:
    details = IndexDetails(type_url=kind, value=b"")
    entry = replace(index("i", KEY), details=details, index_version=version)
    assert overlap.holds_addresses(entry) is held


def test_coverage_follows_moves_that_were_recorded() -> None:
    entry = index("i", VALUE, FIRST, SECOND)
    found = follow_moves((entry, reuse([FIRST, SECOND], [7])))
    assert covered(found[0]) == {7}


def test_fragments_covered_in_part_are_covered_no_more() -> None:
    entry = index("i", VALUE, FIRST)
    assert covered(follow_moves((entry, reuse([FIRST, SECOND], [7])))[0]) == set()


def test_an_index_over_other_fragments_is_as_it_was() -> None:
    entry = index("i", VALUE, SECOND)
    assert follow_moves((entry, reuse([FIRST], [7])))[0] is entry


def reuse(old: list[int], new: list[int]) -> IndexMetadata:
    details = table_pb2.FragmentReuseIndexDetails()
    group = details.inline.versions.add(dataset_version=1).groups.add()
    for i in old:
        group.old_fragments.add(id=i)
    for i in new:
        group.new_fragments.add(id=i)
    return _reuse(details)


def _reuse(details: table_pb2.FragmentReuseIndexDetails) -> IndexMetadata:
    url = "/lance.table.FragmentReuseIndexDetails"
    entry = index(FRAGMENT_REUSE, VALUE)
    value = details.SerializeToString()
    return replace(
        entry, fields=(), details=IndexDetails(type_url=url, value=value), fragment_bitmap=b""
    )


def test_members_of_a_changed_struct_change() -> None:
    inner = pa.struct([("a", pa.int64()), ("b", pa.struct([("c", pa.string())]))])
    schema = from_arrow(pa.schema([("n", pa.int64()), ("st", inner)]))
    number, struct = (field.id for field in schema.fields)
    found = overlap.with_members(schema, [struct, FieldId(99)])
    assert found == {field.id for field in schema.walk()} - {number}
