"""Each kind of damage is repaired or reported with advice, and never made worse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import LanceTableError
from lancelake.maintenance.check.finding import Severity
from lancelake.maintenance.repair import (
    RepairOptions,
    apply,
    find_healthy,
    plan,
    repair,
    restore_healthy,
)
from lancelake.storage.location import Location
from tests.support.compare import assert_same_rows
from tests.support.sound_tables import findings
from tests.unit.maintenance.check.test_version_damage import DAMAGE

Damage = Callable[[Path], object]

REPAIRED = (
    "unset_deletion_flag",
    "unset_config_flag",
    "unset_row_id_flag",
    "unset_a_flag_for_readers_only",
    "lower_the_highest_fragment_id",
    "forget_a_row_count",
    "change_a_data_file_size",
    "drop_a_column_index",
    "share_a_column_index",
    "list_a_strange_field",
    "make_a_file_version_unknown",
    "mix_file_versions",
    "change_a_deletion_count",
    "shrink_a_fragment_below_its_deletions",
    "garble_row_ids",
    "shorten_row_ids",
    "repeat_row_ids_in_another_fragment",
    "repeat_row_ids_in_a_fragment",
    "lower_the_next_row_id",
    "garble_row_versions",
    "lengthen_row_versions",
    "shorten_row_versions",
    "date_rows_in_the_future",
    "give_an_index_a_field_that_is_gone",
    "date_an_index_in_the_future",
    "garble_a_fragment_bitmap",
    "repeat_an_index_uuid",
    "garble_index_details",
    "name_an_index_file_that_is_not_there",
    "point_an_index_file_outside",
    "change_an_index_file_size",
    "name_an_index_folder_that_is_not_there",
    "put_an_index_on_an_undeclared_base",
    "add_rows_to_a_deletion_file",
    "delete_a_row_that_is_not_there",
    "delete_every_row",
    "remove_an_index_file",
    "remove_the_transaction",
    "garble_the_transaction",
    "let_the_transaction_read_its_own_version",
    "hint_at_a_later_version",
)
NOTES = (
    "set_the_flag_of_base_paths",
    "leave_a_file_without_live_columns",
    "cover_a_fragment_that_is_gone",
    "make_the_operation_unknown",
    "garble_the_hint",
    "forget_a_file_size",
    "remove_the_copy_of_the_transaction",
)
LOST = (
    "point_a_data_file_outside",
    "point_a_data_file_to_nowhere",
    "put_a_data_file_on_an_undeclared_base",
    "remove_a_data_file",
    "cut_a_data_file",
)
BY_NAME: dict[str, Damage] = {name: damage for name, damage, _, _ in DAMAGE}
ERRORS = [name for name, _, _, severity in DAMAGE if severity == "error"]
# Wrong values are read of these tables before they are repaired.
MISREAD = ("share_a_column_index", "list_a_strange_field", "mix_file_versions")
REVIVING = ("delete_a_row_that_is_not_there", "add_rows_to_a_deletion_file")
# Their cause lies in no version: to go back does not help.
BEYOND = ("rename_the_version",)


def problems(root: Path, *, data: bool = False) -> Counter[tuple[str, str | None]]:
    """Count what is wrong on the main line."""
    found = findings(root, data=data)
    return Counter((f.code, f.path) for f in found if f.severity is not Severity.INFO)


def rows(root: Path) -> pa.Table | None:
    """Read the rows with their ids; nothing when they cannot be read."""
    try:
        return lance.dataset(str(root)).to_table()
    except (LanceTableError, OSError, ValueError):
        return None


@pytest.mark.parametrize("name", REPAIRED)
def test_is_repaired(name: str, table: Path) -> None:
    BY_NAME[name](table)
    repair(Location.parse(table))
    assert problems(table) == Counter()


@pytest.mark.parametrize("name", [name for name in REPAIRED if name not in MISREAD])
def test_rows_that_could_be_read_stay(name: str, table: Path) -> None:
    BY_NAME[name](table)
    before = rows(table)
    repair(Location.parse(table))
    after = rows(table)
    assert after is not None
    if before is not None:
        assert_same_rows(after, before)


@pytest.mark.parametrize("name", MISREAD)
def test_rows_that_were_misread_come_back(name: str, sound: Path, table: Path) -> None:
    BY_NAME[name](table)
    repair(Location.parse(table))
    after, right = rows(table), rows(sound)
    assert after is not None
    assert right is not None
    assert_same_rows(after, right)


@pytest.mark.parametrize("name", [name for name in REPAIRED if name not in REVIVING])
def test_row_ids_stay_with_their_rows(name: str, sound: Path, table: Path) -> None:
    BY_NAME[name](table)
    repair(Location.parse(table))
    known = _ids(sound)
    assert _ids(table).items() <= known.items()


@pytest.mark.parametrize("name", list(BY_NAME))
def test_nothing_gets_worse(name: str, table: Path) -> None:
    BY_NAME[name](table)
    before = problems(table, data=True)
    done = repair(Location.parse(table), RepairOptions(data=True))
    after = problems(table, data=True)
    assert after <= before
    assert bool(done.done.has_work) is (after != before)


@pytest.mark.parametrize("name", list(BY_NAME))
def test_what_stays_comes_with_advice(name: str, table: Path) -> None:
    BY_NAME[name](table)
    done = repair(Location.parse(table), RepairOptions(data=True))
    left = Counter((each.finding.code, each.finding.path) for each in done.since.left)
    assert left == problems(table, data=True)
    assert all(each.advice for each in done.since.left)


@pytest.mark.parametrize("name", [*REPAIRED, *LOST])
def test_a_plan_changes_nothing(name: str, table: Path) -> None:
    BY_NAME[name](table)
    before = {path: path.stat().st_mtime_ns for path in table.rglob("*")}
    plan(
        Location.parse(table),
        RepairOptions(data=True, drop_lost=True, remove_refs=True, notes=True),
    )
    assert {path: path.stat().st_mtime_ns for path in table.rglob("*")} == before


@pytest.mark.parametrize("name", REPAIRED)
def test_a_second_repair_finds_nothing_to_do(name: str, table: Path) -> None:
    BY_NAME[name](table)
    repair(Location.parse(table))
    assert not plan(Location.parse(table)).has_work


@pytest.mark.parametrize("name", NOTES)
def test_notes_are_repaired_only_when_asked_for(name: str, table: Path) -> None:
    BY_NAME[name](table)
    assert not plan(Location.parse(table)).has_work
    repair(Location.parse(table), RepairOptions(notes=True))
    left = [f.code for f in findings(table) if f.branch is None]
    # Low coverage is no damage.
    assert [code for code in left if code != "index-coverage-low"] == []


@pytest.mark.parametrize("name", LOST)
def test_lost_rows_are_given_up_only_when_asked_for(name: str, table: Path) -> None:
    BY_NAME[name](table)
    assert problems(table)
    assert not plan(Location.parse(table)).has_work
    repair(Location.parse(table), RepairOptions(drop_lost=True))
    assert problems(table) == Counter()
    after = rows(table)
    assert after is not None
    assert 17 <= after.num_rows <= 19


@pytest.mark.parametrize("name", [e for e in ERRORS if e not in BEYOND])
def test_a_way_back_leads_to_a_table_in_order(name: str, table: Path) -> None:
    BY_NAME[name](table)
    try:
        healthy = find_healthy(Location.parse(table), data=True)
    except LanceTableError:
        # Files that all versions share are gone.
        return
    restore_healthy(healthy)
    errors = [f for f in findings(table, data=True) if f.severity is Severity.ERROR]
    assert [f for f in errors if f.branch is None] == []


def test_a_manifest_that_cannot_be_read_is_kept_aside(table: Path) -> None:
    BY_NAME["cut_the_manifest"](table)
    before = sorted((table / "_versions").glob("*.manifest"))[0]
    content = before.read_bytes()
    restore_healthy(find_healthy(Location.parse(table)))
    assert (table / "_damaged" / before.name).read_bytes() == content


def test_a_tagged_version_is_not_quarantined(sound: Path, table: Path) -> None:
    lance.dataset(str(table)).tags.create("newest", 5)
    BY_NAME["cut_the_manifest"](table)
    with pytest.raises(LanceTableError, match="tag newest"):
        restore_healthy(find_healthy(Location.parse(table)))


def test_a_table_in_order_needs_no_repair(sound: Path) -> None:
    planned = plan(Location.parse(sound), RepairOptions(data=True))
    assert (planned.has_work, planned.left) == (False, ())


def test_no_version_is_made_of_a_table_in_order(table: Path) -> None:
    before = lance.dataset(str(table)).version
    repair(Location.parse(table), RepairOptions(data=True))
    assert lance.dataset(str(table)).version == before


def test_old_manifests_are_never_changed(table: Path) -> None:
    BY_NAME["change_a_deletion_count"](table)
    before = {path.name: path.read_bytes() for path in (table / "_versions").glob("*.manifest")}
    repair(Location.parse(table))
    after = {path.name: path.read_bytes() for path in (table / "_versions").glob("*.manifest")}
    assert before.items() <= after.items()


def test_rows_do_not_count_as_changed(table: Path) -> None:
    BY_NAME["change_a_data_file_size"](table)
    columns = ["id", "_row_last_updated_at_version", "_row_created_at_version"]
    before = lance.dataset(str(table)).to_table(columns=columns)
    repair(Location.parse(table))
    assert_same_rows(lance.dataset(str(table)).to_table(columns=columns), before)


def test_a_plan_that_others_overtook_is_made_again(table: Path) -> None:
    BY_NAME["change_a_deletion_count"](table)
    planned = plan(Location.parse(table))
    lance.dataset(str(table)).delete("id = 7")
    apply(planned)
    assert problems(table) == Counter()
    assert lance.dataset(str(table)).count_rows() == 26


def _ids(root: Path) -> dict[int, int]:
    read = lance.dataset(str(root)).to_table(columns=["id"], with_row_id=True)
    return dict(zip(read["id"].to_pylist(), read["_rowid"].to_pylist(), strict=True))
