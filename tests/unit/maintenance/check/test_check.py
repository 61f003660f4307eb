"""The checker is silent on consistent tables, reports findings otherwise, and never crashes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lancelake.errors import StorageUnavailableError, TableNotFoundError
from lancelake.maintenance.check.finding import Progress, Severity
from lancelake.maintenance.check.run import check
from lancelake.storage.local import LocalStore
from lancelake.storage.location import Location
from tests.support.official import Official
from tests.support.sound_tables import codes, findings
from tests.support.table_surgery import manifest_path

HISTORIC = Path(__file__).parents[5] / "shared" / "testdata"


def test_a_branch_can_be_checked_by_its_own_uri(sound: Path) -> None:
    assert findings(sound / "tree" / "side", data=True, versions="all") == []


def test_a_shallow_clone_is_in_order(official_14: Official, sound: Path, tmp_path: Path) -> None:
    official_14.shallow_clone(sound, tmp_path / "clone.lance", 5)
    assert findings(tmp_path / "clone.lance", data=True, versions="all") == []


def test_a_table_in_memory_can_be_checked(sound: Path) -> None:
    location = Location.parse("memory://checked/table")
    store, source = location.store, LocalStore(str(sound))
    for info in source.list():
        if not info.path.startswith("tree/"):
            store.put(info.path, source.get(info.path))
    store.delete("_refs/branches/side.json")
    assert list(check(location, versions="all")) == []


def test_no_table_is_not_a_finding(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError):
        check(Location.parse(tmp_path))


def test_a_store_that_cannot_be_reached_is_not_a_finding(
    sound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(self: LocalStore, path: str) -> bytes:
        raise StorageUnavailableError("no answer", path=path)

    monkeypatch.setattr(LocalStore, "get", unreachable)
    with pytest.raises(StorageUnavailableError):
        findings(sound)


def test_findings_come_while_the_check_runs(table: Path) -> None:
    manifest_path(table, 5).write_bytes(b"")
    steps: list[Progress] = []
    running = check(Location.parse(table), versions="all", on_progress=steps.append)
    next(running)
    assert len(steps) < steps[-1].total


def test_progress_counts_versions_of_the_table_and_its_branches(sound: Path) -> None:
    steps: list[Progress] = []
    list(check(Location.parse(sound), versions="all", on_progress=steps.append))
    assert [step.done for step in steps] == list(range(7))


@settings(max_examples=40)
@given(data=st.data())
def test_no_flipped_byte_of_a_manifest_breaks_the_check(sound: Path, data: st.DataObject) -> None:
    location = Location.parse("memory://flipped/table")
    store = location.store
    path = manifest_path(sound)
    content = bytearray(path.read_bytes())
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= data.draw(st.integers(1, 255))
    store.put(f"_versions/{path.name}", bytes(content))
    assert "check-failed" not in {finding.code for finding in check(location)}


@pytest.mark.skipif(not HISTORIC.exists(), reason="historic tables are not at hand")
@pytest.mark.parametrize(
    "name",
    [
        "v0.7.5/with_deletions",
        "v0.8.0/migrated_from_v0.7.5",
        "v0.10.5/corrupt_schema",
        "v0.15.0/v1_no_files.lance",
        "v0.15.0/v1_with_files.lance",
        "v0.15.0/v2_no_files.lance",
        "v0.15.0/v2_with_files.lance",
        "v0.20.0/old_btree_bitmap_indices.lance",
        "v0.27.1/pq_in_schema",
        "0.36.0/btree_in_index_pkg.lance",
    ],
)
def test_oddities_of_historic_tables_are_no_errors(name: str) -> None:
    found = findings(HISTORIC / name, data=True, versions="all")
    assert [f for f in found if f.severity is Severity.ERROR] == []


def test_codes_of_a_sound_table_are_none(sound: Path) -> None:
    assert codes(sound) == []
