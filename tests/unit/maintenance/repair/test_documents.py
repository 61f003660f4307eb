"""Repair of hints, tags, branches and manifest names, as far as the options allow."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from lancelake.format.layout import ManifestNaming, manifest_name
from lancelake.maintenance.repair import RepairOptions, plan, repair
from lancelake.pylance import dataset
from lancelake.storage.location import Location
from tests.support.sound_tables import codes, findings
from tests.support.table_surgery import manifest_path

NOTHING = RepairOptions()
REFS = RepairOptions(remove_refs=True)


def repaired(table: Path, options: RepairOptions) -> list[str]:
    """Repair a table; return what was done, which must be all that a plan says."""
    planned = [step for _, step in plan(Location.parse(table), options).steps()]
    done = repair(Location.parse(table), options)
    assert [step for _, step in done.done.steps()] == planned
    return planned


def test_a_hint_at_a_later_version_is_rewritten(table: Path) -> None:
    hint = table / "_versions" / "latest_version_hint.json"
    hint.write_text(json.dumps({"version": 50}))
    repaired(table, NOTHING)
    assert json.loads(hint.read_text()) == {"version": 5}


def test_a_tag_that_leads_nowhere_stays_unless_asked_for(table: Path) -> None:
    manifest_path(table, 1).unlink()
    assert repaired(table, NOTHING) == []
    assert repaired(table, REFS) == ["tag 'first': deleted"]
    assert codes(table) == ["versions-removed"]


def test_the_size_in_a_tag_is_corrected(table: Path) -> None:
    path = table / "_refs" / "tags" / "first.json"
    document = json.loads(path.read_text())
    size = document["manifestSize"]
    path.write_text(json.dumps(document | {"manifestSize": size + 1}))
    assert repaired(table, NOTHING) == ["tag 'first': manifest size corrected"]
    assert json.loads(path.read_text())["manifestSize"] == size
    assert dataset(str(table), "first").version == 1


def test_a_damaged_tag_is_removed_on_request(table: Path) -> None:
    (table / "_refs" / "tags" / "first.json").write_text("{")
    assert repaired(table, NOTHING) == []
    assert repaired(table, REFS) == ["tag 'first': deleted"]
    assert findings(table) == []


def test_a_branch_without_versions_is_removed_on_request(table: Path) -> None:
    shutil.rmtree(table / "tree" / "side")
    assert repaired(table, NOTHING) == []
    assert repaired(table, REFS) == ["branch 'side': deleted"]
    assert findings(table) == []


def test_a_damaged_document_of_a_branch_with_versions_stays(table: Path) -> None:
    path = table / "_refs" / "branches" / "side.json"
    path.write_text("{")
    assert repaired(table, REFS) == []
    assert path.exists()


def test_manifests_are_renamed_on_request(table: Path) -> None:
    path = manifest_path(table, 2)
    path.rename(path.with_name(manifest_name(2, ManifestNaming.V1)))
    assert repaired(table, NOTHING) == []
    assert len(repaired(table, RepairOptions(rename_manifests=True))) == 1
    assert findings(table) == []


def test_a_branch_is_repaired_on_its_own_line(table: Path) -> None:
    branch = table / "tree" / "side"
    hint = branch / "_versions" / "latest_version_hint.json"
    hint.write_text(json.dumps({"version": 50}))
    before = dataset(str(table)).version
    repaired(table, NOTHING)
    assert json.loads(hint.read_text()) == {"version": 6}
    assert dataset(str(table)).version == before
