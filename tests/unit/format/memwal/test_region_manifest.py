from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lancelake.errors import CorruptTableError
from lancelake.format.memwal import region_manifest, wal_files
from lancelake.format.memwal.region_manifest import Generation, RegionManifest
from tests.support.memwal_tables import BUCKET, SIMPLE, TABLES


@pytest.mark.parametrize("path", sorted(TABLES.glob("*/_mem_wal/*/manifest/*.binpb")))
def test_official_manifests_are_written_back_unchanged(path: Path) -> None:
    data = path.read_bytes()
    assert region_manifest.encode(region_manifest.decode(data)) == data


def test_an_official_manifest_is_read() -> None:
    found = region_manifest.decode((SIMPLE / wal_files.manifest(BUCKET, 7)).read_bytes())
    assert (found.version, found.writer_epoch, found.replay_after) == (7, 3, 5)
    assert (found.current_generation, found.spec_id, found.is_active) == (3, 1, True)
    assert [(g.generation, g.physical_rows) for g in found.generations] == [(1, 5), (2, 1)]


def test_fields_of_newer_writers_are_kept() -> None:
    data = region_manifest.encode(RegionManifest(region_id=BUCKET)) + b"\xa2\x06\x01x"
    found = region_manifest.decode(data)
    assert region_manifest.encode(found.claimed()).endswith(b"\xa2\x06\x01x")


def test_a_claim_keeps_values_and_generations() -> None:
    before = RegionManifest(
        region_id=BUCKET, field_values=(("bucket", b"\x00"),), current_generation=4
    )
    assert before.claimed() == replace(before, version=1, writer_epoch=1)


def test_generations_are_flushed_in_order() -> None:
    with pytest.raises(CorruptTableError, match="before generation 1"):
        RegionManifest(region_id=BUCKET).with_generation(
            Generation(generation=2, path="x"), covers=3
        )


def test_a_sealed_region_is_not_active() -> None:
    sealed = RegionManifest(region_id=BUCKET).sealed()
    assert not region_manifest.decode(region_manifest.encode(sealed)).is_active


@pytest.mark.parametrize("data", [b"", b"{}", b'{"version":"x"}', b"\xff", b"[]", b'{"version":0}'])
def test_a_damaged_hint_is_ignored(data: bytes) -> None:
    assert region_manifest.decode_hint(data) is None


def test_the_hint_is_that_of_the_official_release() -> None:
    data = (SIMPLE / wal_files.version_hint(BUCKET)).read_bytes()
    assert region_manifest.encode_hint(7) == data
    assert region_manifest.decode_hint(data) == 7


@pytest.mark.parametrize("name", ["version", "writer_epoch", "replay_after", "current_generation"])
def test_a_counter_that_cannot_be_counted_on_is_refused(name: str) -> None:
    manifest = replace(RegionManifest(region_id=BUCKET), **{name: (1 << 64) - 1})
    with pytest.raises(CorruptTableError, match="18446744073709551615"):
        region_manifest.decode(region_manifest.encode(manifest))
