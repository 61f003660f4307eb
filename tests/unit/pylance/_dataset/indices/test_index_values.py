"""Coverage and kind of indices as in official releases."""

from __future__ import annotations

import pickle
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from pyroaring import BitMap

from lancelake.errors import CorruptTableError, InvalidRequestError, UnsupportedError
from lancelake.format import arrow_schema
from lancelake.format.fragment import DeletionFile, DeletionFileType, FileVersion, Fragment
from lancelake.format.index_meta import IndexDetails, IndexMetadata
from lancelake.format.index_meta import IndexFile as FileEntry
from lancelake.format.manifest import Manifest
from lancelake.proto import index_pb2
from lancelake.pylance._dataset.index_values import (
    Index,
    IndexFile,
    describe,
    from_index,
    inform,
    to_index,
)
from tests.strategies.index_entries import well_formed

FIRST = UUID(int=1)
SECOND = UUID(int=2)
BTREE = IndexDetails(type_url="/lance.table.BTreeIndexDetails", value=b"")
VECTOR = IndexDetails(type_url="/lance.table.VectorIndexDetails", value=b"")
SCHEMA = arrow_schema.from_arrow(
    pa.schema([pa.field("a", pa.int64()), pa.field("s", pa.struct([pa.field("x", pa.int64())]))])
)
DELETED = DeletionFile(file_type=DeletionFileType.BITMAP, read_version=1, id=1, num_deleted_rows=10)
MANIFEST = Manifest(
    schema=SCHEMA,
    fragments=(
        Fragment(id=0, files=(), physical_rows=100, deletion_file=DELETED),
        Fragment(id=1, files=(), physical_rows=50),
        Fragment(id=2, files=(), physical_rows=None),
    ),
    version=3,
    data_version=FileVersion.V2_1,
)


def entry(unique: UUID = FIRST, *, name: str = "a_idx", covers=(0,), **values: object):
    defaults = {
        "fields": (0,),
        "dataset_version": 2,
        "fragment_bitmap": bytes(BitMap(covers).serialize()),
        "details": BTREE,
        "index_version": 0,
        "created_at_ms": 1_000,
        "files": (FileEntry(path="page_data.lance", size_bytes=30),),
    }
    return IndexMetadata(uuid=unique, name=name, **(defaults | values))


def test_an_index_shows_its_values():
    assert from_index(entry(covers=(0, 2))) == Index(
        str(FIRST),
        "a_idx",
        [0],
        2,
        {0, 2},
        0,
        datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
        None,
        [IndexFile("page_data.lance", 30)],
        ("/lance.table.BTreeIndexDetails", b""),
    )


def test_what_an_entry_does_not_say_is_none_or_empty():
    bare = from_index(IndexMetadata(uuid=FIRST, name="n", fields=(), dataset_version=1))

    assert bare == Index(str(FIRST), "n", [], 1, set(), 0)


def test_it_is_printed_as_official_releases_print_it():
    shown = Index("u", "n", [0], 1, {0}, 0, files=[IndexFile("p", 3)])

    assert repr(shown) == (
        "Index(uuid='u', name='n', fields=[0], dataset_version=1, fragment_ids={0}, "
        "index_version=0, created_at=None, base_id=None, "
        "files=[IndexFile(path='p', size_bytes=3)], index_details=None, covering_fields=[])"
    )


@pytest.mark.parametrize("covers", [{0, 1}, [1, 0], (0, 1, 1), BitMap([0, 1])], ids=repr)
def test_covered_fragments_may_be_given_as_any_numbers(covers):
    made = to_index(Index(str(FIRST), "n", [0], 1, covers, 0))

    assert made.fragments() == BitMap([0, 1])


def test_a_changed_coverage_is_written():
    shown = from_index(entry(covers=(0,)))
    shown.fragment_ids = {7}

    assert to_index(shown).fragments() == BitMap([7])


def test_a_changed_version_is_written():
    shown = from_index(entry(index_version=None))
    shown.index_version = 3

    assert to_index(shown).index_version == 3


@pytest.mark.parametrize("changed", [{"uuid": "x"}, {"fragment_ids": {-1}}])
def test_impossible_values_are_refused(changed):
    with pytest.raises(InvalidRequestError):
        to_index(replace(from_index(entry()), **changed))


def test_a_time_without_a_zone_is_refused():
    with pytest.raises(TypeError):
        to_index(replace(from_index(entry()), created_at=datetime(2020, 1, 1)))


def test_covering_fields_are_refused():
    with pytest.raises(UnsupportedError):
        to_index(replace(from_index(entry()), covering_fields=[1]))


def test_a_time_past_the_calendar_is_damage():
    with pytest.raises(CorruptTableError):
        from_index(entry(created_at_ms=(1 << 64) - 1))


@given(well_formed())
def test_an_entry_of_the_format_comes_back_whole(found):
    assert to_index(from_index(found)) == found


@given(well_formed())
def test_pickle_keeps_everything(found):
    assert to_index(pickle.loads(pickle.dumps(from_index(found)))) == found


def test_an_index_is_described_with_all_its_segments():
    segments = [entry(FIRST, covers=(0,)), entry(SECOND, covers=(1,))]

    (shown,) = describe(segments, MANIFEST)

    assert [s.uuid for s in shown.segments] == [str(FIRST), str(SECOND)]
    assert (shown.num_rows_indexed, shown.total_size_bytes) == (90 + 50, 60)


def test_a_description_is_printed_as_official_releases_print_it():
    (shown,) = describe([entry()], MANIFEST)

    assert repr(shown) == (
        "IndexDescription(name='a_idx', type_url='/lance.table.BTreeIndexDetails', "
        'num_rows_indexed=90, fields=[0], field_names=["a"], num_segments=1, '
        "total_size_bytes=30)"
    )


def test_a_size_that_is_not_recorded_is_left_out():
    (shown,) = describe([entry(), entry(SECOND, files=())], MANIFEST)

    assert shown.total_size_bytes is None
    assert repr(shown).endswith("num_segments=2)")


def test_a_segment_is_described_with_its_own_values():
    (shown,) = describe([entry(index_version=4, base_id=9)], MANIFEST)
    (segment,) = shown.segments

    assert (segment.fragment_ids, segment.index_version, segment.base_id) == ({0}, 4, 9)
    assert segment.dataset_version_at_last_update == 2
    assert segment.created_at == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert (segment.size_bytes, segment.covering_fields) == (30, [])


def test_fragments_that_are_gone_or_not_counted_add_no_rows():
    (shown,) = describe([entry(covers=(1, 2, 7))], MANIFEST)

    assert shown.num_rows_indexed == 50


def test_a_fragment_covered_twice_is_counted_once():
    (shown,) = describe([entry(covers=(1,)), entry(SECOND, covers=(1,))], MANIFEST)

    assert shown.num_rows_indexed == 50


def test_indices_are_described_by_name():
    shown = describe([entry(name="b"), entry(SECOND, name="a")], MANIFEST)

    assert [index.name for index in shown] == ["a", "b"]


def test_a_nested_field_is_named_by_its_path():
    (shown,) = describe([entry(fields=(2,))], MANIFEST)

    assert (shown.fields, shown.field_names) == ([2], ["s.x"])


def test_an_index_without_details_is_of_unknown_kind():
    (shown,) = describe([entry(details=None)], MANIFEST)

    assert (shown.index_type, shown.type_url, shown.details) == ("Unknown", "", {})


def test_details_name_the_kind_of_a_vector_index():
    message = index_pb2.VectorIndexDetails()
    message.sq.num_bits = 8
    details = replace(VECTOR, value=message.SerializeToString())

    (shown,) = describe([entry(details=details)], MANIFEST)

    assert shown.index_type == "IVF_SQ"
    assert shown.details["compression"] == {"type": "sq", "num_bits": 8}


def test_the_kind_of_a_vector_index_may_be_given():
    (shown,) = describe([entry(details=VECTOR)], MANIFEST, kinds={FIRST: "IVF_PQ"})

    assert shown.index_type == "IVF_PQ"


def test_the_kind_of_a_vector_index_may_be_unknown():
    (shown,) = describe([entry(details=VECTOR)], MANIFEST)

    assert shown.index_type == "Unknown"


def test_coverage_may_be_given():
    (shown,) = describe([entry(covers=(5,))], MANIFEST, coverage={FIRST: {0, 1}})

    assert (shown.segments[0].fragment_ids, shown.num_rows_indexed) == ({0, 1}, 140)


def test_segments_are_listed_with_the_name_of_their_fields():
    assert inform([entry(covers=(0, 1), base_id=4)], MANIFEST) == [
        {
            "name": "a_idx",
            "type": "BTree",
            "uuid": str(FIRST),
            "fields": ["a"],
            "version": 2,
            "fragment_ids": {0, 1},
            "base_id": 4,
        }
    ]
