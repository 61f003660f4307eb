from __future__ import annotations

from pathlib import Path

import pytest

from lancelake.errors import AlreadyExistsError, CorruptTableError
from lancelake.format.memwal import region_manifest, wal_files
from lancelake.format.memwal.region_manifest import RegionManifest
from lancelake.memwal.region import RegionFiles, list_regions
from lancelake.storage.location import Location
from tests.support.memwal_tables import BUCKET, REGION, SIMPLE


@pytest.fixture
def files(tmp_path: Path) -> RegionFiles:
    return RegionFiles.at(Location.parse(tmp_path), REGION)


def _manifest(version: int) -> RegionManifest:
    return RegionManifest(region_id=REGION, version=version)


def test_a_new_region_has_no_manifest(files: RegionFiles) -> None:
    assert (files.latest(), files.last_position()) == (None, 0)


@pytest.mark.parametrize("hint", [None, b"{", b'{"version":1}', b'{"version":9}'])
def test_the_newest_manifest_is_found_whatever_the_hint_says(
    files: RegionFiles, hint: bytes | None
) -> None:
    for version in (1, 2, 3):
        files.create_manifest(_manifest(version))
    path = wal_files.version_hint(REGION)
    files.store.delete(path) if hint is None else files.store.put(path, hint)
    assert files.latest() == _manifest(3)


def test_a_version_is_written_once(files: RegionFiles) -> None:
    files.create_manifest(_manifest(1))
    with pytest.raises(AlreadyExistsError):
        files.create_manifest(_manifest(1))


def test_a_manifest_of_another_version_is_corrupt(files: RegionFiles) -> None:
    files.store.create(wal_files.manifest(REGION, 1), region_manifest.encode(_manifest(2)))
    with pytest.raises(CorruptTableError, match="version 2"):
        files.latest()


def test_a_missing_entry_is_corrupt(files: RegionFiles) -> None:
    files.create_entry(2, wal_files.encode_sentinel(1))
    assert files.last_position() == 2
    with pytest.raises(CorruptTableError, match="no entry at position 1"):
        files.entry(1)


def test_regions_are_the_folders(tmp_path: Path) -> None:
    assert list_regions(Location.parse(tmp_path)) == ()
    assert list_regions(Location.parse(SIMPLE)) == (BUCKET,)
