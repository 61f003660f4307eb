"""Official releases read and write repaired tables."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.maintenance.repair import RepairOptions, find_healthy, repair, restore_healthy
from lancelake.storage.location import Location
from tests.support.compare import assert_same_rows
from tests.support.official import Official
from tests.support.official_process import OfficialError
from tests.support.raw_text import TEXTS, binaries, with_text
from tests.support.sound_tables import build_sound, codes
from tests.unit.maintenance.check.test_version_damage import DAMAGE

BY_NAME = {name: damage for name, damage, _, _ in DAMAGE}
MENDED = (
    "unset_deletion_flag",
    "lower_the_highest_fragment_id",
    "forget_a_row_count",
    "change_a_data_file_size",
    "drop_a_column_index",
    "change_a_deletion_count",
    "delete_a_row_that_is_not_there",
    "shrink_a_fragment_below_its_deletions",
    "garble_row_ids",
    "repeat_row_ids_in_another_fragment",
    "lower_the_next_row_id",
    "garble_row_versions",
    "garble_a_fragment_bitmap",
    "repeat_an_index_uuid",
    "remove_an_index_file",
    "remove_the_transaction",
)
BACK = ("cut_the_manifest", "make_a_fragment_too_large", "repeat_a_field_id", "cut_an_index_uuid")
LOST = ("remove_a_data_file", "cut_a_data_file")


@pytest.fixture(scope="module")
def whole(official: Official, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table that the release wrote."""
    return build_sound(official, tmp_path_factory.mktemp("whole") / "whole.lance")


@pytest.fixture
def table(whole: Path, tmp_path: Path) -> Path:
    """Return a copy to damage."""
    return Path(shutil.copytree(whole, tmp_path / "table.lance"))


@pytest.mark.parametrize("name", MENDED)
def test_a_repaired_table_is_read_and_written(name: str, official: Official, table: Path) -> None:
    BY_NAME[name](table)
    repair(Location.parse(table))
    _agree(official, table)


@pytest.mark.parametrize("name", LOST)
def test_a_table_without_what_was_lost_is_read_and_written(
    name: str, official: Official, table: Path
) -> None:
    BY_NAME[name](table)
    repair(Location.parse(table), RepairOptions(drop_lost=True))
    _agree(official, table)


@pytest.mark.parametrize("name", BACK)
def test_a_table_that_went_back_is_read_and_written(
    name: str, official: Official, table: Path
) -> None:
    BY_NAME[name](table)
    restore_healthy(find_healthy(Location.parse(table)))
    _agree(official, table)


@pytest.mark.parametrize("version", ["2.0", "2.1"])
@pytest.mark.parametrize("stable", [False, True])
def test_a_table_with_replaced_text_is_read_and_written(
    version: str, stable: bool, official: Official, tmp_path: Path
) -> None:
    rows = pa.table(
        {
            "id": range(len(TEXTS)),
            "text": binaries(*TEXTS),
            "words": pa.array([[text, b"x"] for text in TEXTS], pa.list_(pa.binary())),
            "pair": pa.StructArray.from_arrays([binaries(*TEXTS)], ["text"]),
        }
    )
    binary = tmp_path / "binary.lance"
    lance.write_dataset(
        rows, binary, data_storage_version=version, enable_stable_row_ids=stable
    ).delete("id = 4")
    table = with_text(binary, tmp_path / "table.lance")
    with pytest.raises(OfficialError):
        official.read(table)
    repair(Location.parse(table), RepairOptions(replace_invalid_utf8=True))
    _agree(official, table)


def test_an_index_with_text_that_is_not_utf8_is_dropped(
    official_14: Official, tmp_path: Path
) -> None:
    binary = tmp_path / "binary.lance"
    rows = pa.table({"id": range(len(TEXTS)), "text": binaries(*TEXTS)})
    lance.write_dataset(rows, binary, max_rows_per_file=4)
    official_14.create_scalar_index(binary, "text", "BTREE")
    table = with_text(binary, tmp_path / "table.lance")
    repair(Location.parse(table), RepairOptions(replace_invalid_utf8=True))
    assert lance.dataset(str(table)).describe_indices() == []
    found = official_14.read(table, filter="text = 'a\ufffd'")
    assert found["id"].to_pylist() == [3]


def _agree(official: Official, table: Path) -> None:
    """Let the release read, look up by the index, add rows and delete some."""
    ours = lance.dataset(str(table)).to_table()
    assert_same_rows(official.read(table), ours)
    assert official.count_rows(table) == ours.num_rows
    some = ours["id"][3].as_py()
    assert official.read(table, filter=f"id = {some}")["id"].to_pylist() == [some]
    official.append(table, ours.slice(0, 2))
    official.delete(table, f"id = {some}")
    after = lance.dataset(str(table)).to_table()
    assert_same_rows(after, official.read(table))
    assert after.num_rows == ours.num_rows + 1
    assert isinstance(after, pa.Table)
    assert codes(table, data=True) in ([], ["index-bitmap-stale"])
