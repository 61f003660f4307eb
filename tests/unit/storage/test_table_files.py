"""Locations of manifest entries, confined to the table."""

from __future__ import annotations

from uuid import UUID

import pytest

from lancelake.errors import CorruptTableError
from lancelake.format.fragment import (
    BasePath,
    DataFile,
    DeletionFile,
    DeletionFileType,
    ExternalFile,
)
from lancelake.format.ids import BaseId
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt, TableFiles

ROOT = Location.parse("s3://bucket/some/table.lance", {"region": "x"})
FILES = TableFiles(
    root=ROOT,
    bases=(
        BasePath(id=BaseId(1), path="s3://other/base.lance", is_dataset_root=True),
        BasePath(id=BaseId(2), path="s3://other/plain folder", is_dataset_root=False),
    ),
)


def data_file(path: str, base_id: int | None = None) -> DataFile:
    return DataFile(
        path=path,
        fields=(),
        file_major_version=2,
        file_minor_version=1,
        base_id=None if base_id is None else BaseId(base_id),
    )


def deletion_file(base_id: int | None = None) -> DeletionFile:
    return DeletionFile(
        file_type=DeletionFileType.BITMAP,
        read_version=5,
        id=77,
        base_id=None if base_id is None else BaseId(base_id),
    )


@pytest.mark.parametrize(
    ("base_id", "uri"),
    [
        (None, "s3://bucket/some/table.lance/data/x.lance"),
        (1, "s3://other/base.lance/data/x.lance"),
        (2, "s3://other/plain%20folder/x.lance"),
    ],
)
def test_data_file_is_below_its_base(base_id: int | None, uri: str) -> None:
    assert FILES.data_file(data_file("x.lance", base_id)).uri == uri


def test_base_is_reached_with_the_options_of_the_table() -> None:
    assert FILES.data_file(data_file("x.lance", 1)).root.storage_options == {"region": "x"}


@pytest.mark.parametrize(
    ("base_id", "uri"),
    [
        (None, "s3://bucket/some/table.lance/_deletions/3-5-77.bin"),
        (1, "s3://other/base.lance/_deletions/3-5-77.bin"),
    ],
)
def test_deletion_file_is_named_by_fragment_version_and_id(base_id: int | None, uri: str) -> None:
    assert FILES.deletion_file(3, deletion_file(base_id)).uri == uri


def test_deletion_file_under_a_plain_folder_is_damage() -> None:
    with pytest.raises(CorruptTableError, match="not a table"):
        FILES.deletion_file(3, deletion_file(2))


@pytest.mark.parametrize(
    "path",
    ["../x.lance", "/etc/passwd", "a/../../x", "%2e%2e/x", "..\\x", "s3://evil/x", "", "c:/x"],
)
def test_path_that_leads_out_of_the_table_is_refused(path: str) -> None:
    with pytest.raises(CorruptTableError):
        FILES.data_file(data_file(path))
    with pytest.raises(CorruptTableError):
        FILES.external(ExternalFile(path=path, offset=0, size=1))


def test_unknown_base_is_damage() -> None:
    with pytest.raises(CorruptTableError, match="base path 9"):
        FILES.data_file(data_file("x.lance", 9))


def test_index_folder_is_named_by_its_uuid() -> None:
    class Entry:
        uuid = UUID(int=1)
        base_id = None

    place = FILES.index_dir(Entry())  # type: ignore[arg-type]  # all that is looked at
    assert place == FileAt(root=ROOT, path=f"_indices/{UUID(int=1)}")


def test_local_paths_are_taken_literally() -> None:
    files = TableFiles(root=Location.parse("/some dir/100%/t.lance"))
    assert (
        files.data_file(data_file("a b%20.lance")).uri == "/some dir/100%/t.lance/data/a b%20.lance"
    )
