"""Fragments and files are read and written without loss; invalid ones are refused."""

from __future__ import annotations

import pytest

from lancelake.errors import CorruptTableError, UnsupportedError
from lancelake.format import fragment
from lancelake.format.fragment import DeletionFileType, ExternalFile, FileVersion
from lancelake.proto import table_pb2
from tests.unit.format.golden.files import RELEASES, manifest


def message(**values: object) -> table_pb2.DataFragment:
    return table_pb2.DataFragment(id=1, physical_rows=10, **values)


def deletion(**values: object) -> table_pb2.DeletionFile:
    return table_pb2.DeletionFile(read_version=3, id=4, **values)


@pytest.mark.parametrize("release", RELEASES)
def test_a_file_of_2_1_lists_only_fields_with_a_column(release):
    (file,) = manifest(release, "create").manifest.fragments[0].files

    assert (file.fields, file.column_indices) == ((0, 1, 3, 4, 6, 7, 8), (0, 1, 2, 3, 4, 5, 6))


@pytest.mark.parametrize("release", RELEASES)
def test_a_file_of_2_1_says_so(release):
    (file,) = manifest(release, "create").manifest.fragments[0].files

    assert file.version is FileVersion.V2_1


@pytest.mark.parametrize("release", RELEASES)
def test_a_few_deleted_rows_are_an_array_file(release):
    first = manifest(release, "delete").manifest.fragments[0]

    assert first.deletion_file is not None
    assert (first.deletion_file.file_type, first.deletion_file.num_deleted_rows) == (
        DeletionFileType.ARROW_ARRAY,
        2,
    )


@pytest.mark.parametrize("release", RELEASES)
def test_live_rows_are_physical_rows_without_deleted_ones(release):
    fragments = manifest(release, "delete").manifest.fragments

    assert [f.live_rows for f in fragments] == [58, 39, 50]


def test_a_fragment_without_a_deletion_file_has_no_deleted_rows():
    assert fragment.decode(message()).num_deleted_rows == 0


def test_a_deletion_file_may_not_say_how_many_rows_it_lists():
    assert fragment.decode(message(deletion_file=deletion())).live_rows is None


def test_physical_rows_of_0_mean_unknown():
    assert fragment.decode(table_pb2.DataFragment(id=1)).physical_rows is None


def test_a_file_size_of_0_means_unknown():
    found = fragment.decode(message(files=[table_pb2.DataFile(path="p")]))

    assert found.files[0].file_size_bytes is None


def test_base_0_is_a_base():
    found = fragment.decode(message(files=[table_pb2.DataFile(path="p", base_id=0)]))

    assert found.files[0].base_id == 0


def test_no_base_is_not_base_0():
    found = fragment.decode(message(files=[table_pb2.DataFile(path="p")]))

    assert found.files[0].base_id is None


def test_counts_that_are_not_trusted_are_unknown():
    source = message(deletion_file=deletion(num_deleted_rows=2))
    found = fragment.decode(source, trust_counts=False)

    assert (found.physical_rows, found.num_deleted_rows) == (None, None)


def test_inline_row_ids_may_be_empty():
    assert fragment.decode(message(inline_row_ids=b"")).row_ids == b""


def test_row_ids_may_be_in_a_file():
    external = table_pb2.ExternalFile(path="p", offset=1, size=2)

    assert fragment.decode(message(external_row_ids=external)).row_ids == ExternalFile(
        path="p", offset=1, size=2
    )


def test_a_deletion_file_type_that_is_not_known_is_refused():
    source = message(deletion_file=deletion())
    source.deletion_file.MergeFromString(b"\x08\x07")

    with pytest.raises(UnsupportedError):
        fragment.decode(source)


@pytest.mark.parametrize(
    "source",
    [
        table_pb2.DataFragment(id=1 << 32),
        table_pb2.DataFragment(id=1, physical_rows=(1 << 32) + 1),
    ],
)
def test_rows_without_an_address_are_damage(source):
    with pytest.raises(CorruptTableError):
        fragment.decode(source)


def test_a_file_version_that_is_not_known_is_refused_when_asked_for():
    file = fragment.decode_data_file(table_pb2.DataFile(path="p", file_major_version=9))

    with pytest.raises(UnsupportedError):
        _ = file.version
