from __future__ import annotations

import pytest

from lancelake.errors import CorruptTableError
from lancelake.format.memwal import wal_files
from tests.support.memwal_tables import BUCKET, SIMPLE, UNSHARDED


def test_regions_are_named_as_lancedb_names_them() -> None:
    assert (wal_files.bucket_region(0), wal_files.unsharded_region()) == (BUCKET, UNSHARDED)


def test_file_names_are_those_of_the_official_release() -> None:
    manifests = {wal_files.manifest(BUCKET, version) for version in range(1, 8)}
    entries = {wal_files.wal_entry(BUCKET, position) for position in range(1, 9)}
    found = {str(p.relative_to(SIMPLE)) for p in SIMPLE.glob("_mem_wal/*/*/*")}
    assert manifests | entries <= found


def test_names_are_read_back() -> None:
    manifest, entry = wal_files.manifest(BUCKET, 5), wal_files.wal_entry(BUCKET, 6)
    assert wal_files.parse_manifest(manifest.rpartition("/")[2]) == 5
    assert wal_files.parse_wal_entry(entry.rpartition("/")[2]) == 6
    assert wal_files.parse_wal_entry("1.arrow") is None
    assert wal_files.parse_region_dir(str(BUCKET)) == BUCKET
    assert wal_files.parse_region_dir(BUCKET.hex) is None


@pytest.mark.parametrize("path", ["", "..", "a/b", "/etc", "a\\b"])
def test_a_generation_stays_in_its_region(path: str) -> None:
    with pytest.raises(CorruptTableError, match="invalid generation path"):
        wal_files.generation_dir(BUCKET, path)
