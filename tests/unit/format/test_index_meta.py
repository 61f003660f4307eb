"""Index entries are read and written without loss."""

from __future__ import annotations

import uuid

import pytest
from pyroaring import BitMap

from lancelake.errors import CorruptTableError
from lancelake.format import index_meta
from lancelake.format.ids import Version
from lancelake.format.index_meta import FRAGMENT_REUSE, MEM_WAL, IndexDetails, IndexMetadata
from lancelake.proto import table_pb2
from tests.unit.format.golden.files import RELEASES, manifest


def entry(name: str = "i", bitmap: bytes = b"") -> IndexMetadata:
    return IndexMetadata(
        uuid=uuid.UUID(int=5),
        name=name,
        fields=(),
        dataset_version=Version(1),
        fragment_bitmap=bitmap,
    )


def golden(release: str) -> IndexMetadata:
    section = manifest(release, "create_index").index_section
    assert section is not None
    (found,) = index_meta.decode_section(section)
    return found


@pytest.mark.parametrize("release", RELEASES)
def test_an_entry_by_an_official_release_names_its_column_and_version(release):
    found = golden(release)

    assert (found.name, found.fields, found.dataset_version, found.index_version) == (
        "id_idx",
        (0,),
        3,
        0,
    )


@pytest.mark.parametrize("release", RELEASES)
def test_an_entry_by_an_official_release_covers_all_fragments(release):
    assert golden(release).fragments() == BitMap([0, 1, 2])


@pytest.mark.parametrize("release", RELEASES)
def test_an_entry_by_an_official_release_lists_its_files(release):
    names = sorted(file.path for file in golden(release).files)

    assert names == ["page_data.lance", "page_lookup.lance"]


@pytest.mark.parametrize("release", RELEASES)
def test_a_section_by_an_official_release_is_written_as_it_was(release):
    section = manifest(release, "create_index").index_section
    assert section is not None

    assert index_meta.encode_section(index_meta.decode_section(section)) == section


def test_no_bitmap_means_that_coverage_is_not_known():
    assert entry().fragments() is None


def test_an_empty_bitmap_means_that_nothing_is_covered():
    assert entry(bitmap=bytes(BitMap().serialize())).fragments() == BitMap()


def test_a_damaged_bitmap_is_reported_with_the_name_of_the_index():
    with pytest.raises(CorruptTableError, match="'broken'"):
        entry("broken", b"\x01\x02").fragments()


@pytest.mark.parametrize("name", [FRAGMENT_REUSE, MEM_WAL])
def test_a_system_index_is_known_by_its_name(name):
    assert entry(name).is_system


def test_other_indices_are_not_of_the_system():
    assert not entry("x").is_system


@pytest.mark.parametrize(
    "url",
    [
        "/lance.table.BTreeIndexDetails",
        "/lance.index.pb.BTreeIndexDetails",
        "type.googleapis.com/lance.table.BTreeIndexDetails",
        "btreeindexdetails",
    ],
)
def test_a_kind_is_the_last_part_of_its_url(url):
    assert IndexDetails(type_url=url, value=b"").kind == "btreeindexdetails"


@pytest.mark.parametrize("data", [b"", b"\0" * 15, b"\0" * 17])
def test_a_uuid_of_another_length_is_damage(data):
    with pytest.raises(CorruptTableError):
        index_meta.decode_uuid(table_pb2.UUID(uuid=data))


def test_a_bitmap_that_claims_all_fragments_is_refused():
    everything = BitMap()
    everything.add_range(0, 1 << 32)
    everything.run_optimize()
    with pytest.raises(CorruptTableError, match="claims 4294967296 fragments"):
        entry(bitmap=bytes(everything.serialize())).fragments()
