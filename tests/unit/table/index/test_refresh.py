"""Indices brought up to date after rows came, went and moved."""

from __future__ import annotations

import gc
import pathlib
import tempfile

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.data.codec.index_file import SegmentFolder
from lancelake.errors import IndexNotFoundError, InvalidRequestError
from lancelake.index.kind import BuiltSegment
from lancelake.table.index.build import IndexRun, SegmentBuild, built_here
from lancelake.table.index.refresh import RefreshOptions, refresh_indices, tiered
from tests.support.open_files import open_removed_files
from tests.support.scalar_index_tables import (
    FILTERS,
    IndexedTable,
    entries,
    rows,
    scan_differences,
)

KINDS = {"BTREE": "i", "BITMAP": "k", "LABEL_LIST": "l"}
ZONES = {"ZONEMAP": "i", "BLOOMFILTER": "i"}


def differences(table: lance.LanceDataset, column: str) -> list[str]:
    found = IndexedTable(table.uri)
    return [w for text in FILTERS[column] if (w := found.difference(text, column))]


def covered(table: lance.LanceDataset, name: str) -> list[set[int]]:
    return [s.fragment_ids for i in table.describe_indices() if i.name == name for s in i.segments]


@pytest.mark.parametrize("kind", KINDS)
def test_appended_rows_are_added(table: lance.LanceDataset, kind: str) -> None:
    column = KINDS[kind]
    table.create_scalar_index(column, kind)
    table.insert(rows(80, seed=1))
    table.delete("n % 5 = 1")
    table.optimize.optimize_indices()

    assert table.index_statistics(f"{column}_idx")["num_unindexed_rows"] == 0
    assert len(covered(table, f"{column}_idx")) == 1
    assert differences(table, column) == []


@pytest.mark.parametrize("kind", KINDS)
def test_updated_rows_are_found_by_their_new_values(table: lance.LanceDataset, kind: str) -> None:
    column = KINDS[kind]
    table.create_scalar_index(column, kind)
    table.update({"i": "i + 1", "k": "3", "l": "['y', 'new']"}, "n % 4 = 1")
    table.optimize.optimize_indices()

    assert table.index_statistics(f"{column}_idx")["num_unindexed_rows"] == 0
    assert differences(table, column) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_written_in_place_is_read_again(table: lance.LanceDataset, kind: str) -> None:
    column = KINDS[kind]
    table.create_scalar_index(column, kind)
    change = {"i": "i + 1", "k": "3", "l": "['y', 'new']"}[column]
    table.update({column: change}, "n < 50", write_mode="rewrite_columns")
    assert covered(table, f"{column}_idx") == [{1, 2}]
    table.optimize.optimize_indices()

    assert covered(table, f"{column}_idx") == [{0, 1, 2}]
    assert differences(table, column) == []


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_moved_by_a_recorded_compaction_are_followed(
    table: lance.LanceDataset, kind: str
) -> None:
    column = KINDS[kind]
    table.create_scalar_index(column, kind)
    table.optimize.compact_files(target_rows_per_fragment=1000, defer_index_remap=True)
    table.insert(rows(80, seed=1))
    table.optimize.optimize_indices()

    assert table.index_statistics(f"{column}_idx")["num_unindexed_rows"] == 0
    assert differences(table, column) == []


@pytest.mark.parametrize("kind", KINDS)
def test_no_file_of_a_rewritten_segment_stays_open(
    table: lance.LanceDataset,
    kind: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    table.create_scalar_index(KINDS[kind], kind)
    table.optimize.compact_files(target_rows_per_fragment=1000, defer_index_remap=True)
    table.insert(rows(80, seed=1))
    table.optimize.optimize_indices()
    gc.collect()
    assert open_removed_files(folder) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_compaction_keeps_rows_indexed(table: lance.LanceDataset, kind: str) -> None:
    column = KINDS[kind]
    table.create_scalar_index(column, kind)
    table.optimize.compact_files(target_rows_per_fragment=1000)

    assert len(table.get_fragments()) == 1
    assert table.index_statistics(f"{column}_idx")["num_unindexed_rows"] == 0
    assert differences(table, column) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_compaction_after_a_recorded_one_keeps_rows_indexed(
    table: lance.LanceDataset, kind: str
) -> None:
    column = KINDS[kind]
    table.create_scalar_index(column, kind)
    table.optimize.compact_files(target_rows_per_fragment=150, defer_index_remap=True)
    table.delete("n % 5 = 1")
    table.optimize.compact_files(target_rows_per_fragment=1000)

    assert table.index_statistics(f"{column}_idx")["num_unindexed_rows"] == 0
    assert differences(table, column) == []


@pytest.mark.parametrize("kind", ZONES)
def test_zones_of_moved_rows_are_built_again(tmp_table: str, kind: str) -> None:
    table = lance.write_dataset(rows(300), tmp_table, max_rows_per_file=100)
    table.create_scalar_index("i", kind)
    table.optimize.compact_files(target_rows_per_fragment=1000)
    assert table.index_statistics("i_idx")["num_indexed_rows"] == 0
    table.optimize.optimize_indices()

    assert table.index_statistics("i_idx")["num_unindexed_rows"] == 0
    assert covered(table, "i_idx") == [{f.fragment_id for f in table.get_fragments()}]


def test_fragments_of_different_coverage_stay_apart(table: lance.LanceDataset) -> None:
    table.create_scalar_index("i", "BTREE")
    table.insert(rows(80, seed=1))
    table.optimize.compact_files(target_rows_per_fragment=1000)

    assert len(table.get_fragments()) == 2
    assert table.index_statistics("i_idx")["num_unindexed_rows"] == 80


def test_new_rows_become_a_segment_of_their_own(table: lance.LanceDataset) -> None:
    table.create_scalar_index("i", "BTREE")
    for seed in (1, 2):
        table.insert(rows(80, seed=seed))
        table.optimize.optimize_indices(num_indices_to_merge=0)
    assert covered(table, "i_idx") == [{0, 1, 2}, {3}, {4}]

    table.insert(rows(80, seed=3))
    table.optimize.optimize_indices(num_indices_to_merge=1)
    assert covered(table, "i_idx") == [{0, 1, 2}, {3}, {4, 5}]

    table.optimize.optimize_indices()
    assert covered(table, "i_idx") == [{0, 1, 2, 3, 4, 5}]
    assert differences(table, "i") == []


def test_a_merged_segment_is_as_old_as_its_oldest_part(table: lance.LanceDataset) -> None:
    table.create_scalar_index("i", "BTREE")
    (before,) = entries(table.uri)
    table.insert(rows(80, seed=1))
    table.optimize.optimize_indices()

    (after,) = entries(table.uri)
    assert after.dataset_version == before.dataset_version


def test_nothing_to_do_makes_no_version(table: lance.LanceDataset) -> None:
    table.create_scalar_index("i", "BTREE")
    version = table.version
    table.optimize.optimize_indices()

    assert table.version == version


def test_only_named_indices_are_brought_up_to_date(table: lance.LanceDataset) -> None:
    table.create_scalar_index("i", "BTREE")
    table.create_scalar_index("k", "BITMAP")
    table.insert(rows(80, seed=1))
    table.optimize.optimize_indices(index_names=["k_idx"])

    unindexed = {n: table.index_statistics(n)["num_unindexed_rows"] for n in ("i_idx", "k_idx")}
    assert unindexed == {"i_idx": 80, "k_idx": 0}


def test_an_index_is_built_again_with_its_parameters(table: lance.LanceDataset) -> None:
    table.create_scalar_index("i", "BTREE", zone_size=50)
    pages = table.index_statistics("i_idx")["segments"][0]["num_pages"]
    table.optimize.optimize_indices(retrain=True)

    (segment,) = table.index_statistics("i_idx")["segments"]
    assert segment["num_pages"] == pages > 1
    assert differences(table, "i") == []


def test_an_untrained_index_is_filled(table: lance.LanceDataset) -> None:
    table.create_scalar_index("i", "BTREE", train=False)
    table.optimize.optimize_indices()

    assert table.index_statistics("i_idx")["num_unindexed_rows"] == 0
    assert differences(table, "i") == []


def test_an_unknown_name_is_refused(table: lance.LanceDataset) -> None:
    with pytest.raises(IndexNotFoundError):
        table.optimize.optimize_indices(index_names=["zz"])


def test_a_negative_number_of_segments_is_refused() -> None:
    with pytest.raises(InvalidRequestError):
        RefreshOptions(num_indices_to_merge=-1)


def test_a_damaged_file_is_named_with_its_index(table: lance.LanceDataset) -> None:
    table.create_scalar_index("k", "BITMAP")
    (entry,) = entries(table.uri)
    place = table._snapshot.files.index_dir(entry)
    with pathlib.Path(f"{place.uri}/{entry.files[0].path}").open("r+b") as file:
        file.truncate(10)
    table.insert(rows(80, seed=1))

    with pytest.raises(OSError, match=f"index 'k_idx' cannot be read.*{entry.files[0].path}"):
        table.optimize.optimize_indices()


@pytest.mark.parametrize("kind", [*KINDS, *ZONES, "NGRAM"])
def test_the_record_of_moved_rows_goes_when_all_indices_know_their_places(
    tmp_table: str, kind: str
) -> None:
    column = {**KINDS, **ZONES, "NGRAM": "s"}[kind]
    table = lance.write_dataset(rows(300), tmp_table, max_rows_per_file=100)
    table.create_scalar_index(column, kind)
    table.optimize.compact_files(target_rows_per_fragment=1000, defer_index_remap=True)
    assert any(entry.is_system for entry in entries(tmp_table))
    table.optimize.optimize_indices()

    assert not any(entry.is_system for entry in entries(tmp_table))
    assert table.index_statistics(f"{column}_idx")["num_unindexed_rows"] == 0
    assert kind not in KINDS or differences(table, column) == []
    version = table.version
    table.optimize.optimize_indices()
    assert table.version == version


def test_the_record_of_moved_rows_stays_while_another_index_needs_it(tmp_table: str) -> None:
    table = lance.write_dataset(rows(300), tmp_table, max_rows_per_file=100)
    table.create_scalar_index("i", "BTREE")
    table.create_scalar_index("k", "BITMAP")
    table.optimize.compact_files(target_rows_per_fragment=1000, defer_index_remap=True)
    table.insert(rows(50, seed=1))
    table.optimize.optimize_indices(index_names=["i_idx"])

    assert any(entry.is_system for entry in entries(tmp_table))
    assert differences(table, "i") == []


@pytest.mark.parametrize(
    ("counts", "new", "large", "merged"),
    [
        ([1000], 10, 100, 0),
        ([1000], 600, 100, 1),
        ([1000, 90, 5], 10, 100, 2),
        ([1000, 300, 90], 10, 100, 1),
        ([1000, 300, 90], 100, 100, 2),
        ([90, 80], 0, 100, 2),
        ([1000, 500], 0, 100, 0),
    ],
)
def test_large_segments_are_merged_with_comparable_ones(
    counts: list[int], new: int, large: int, merged: int
) -> None:
    assert tiered(counts, new, 0, large) == merged


@pytest.mark.parametrize("kind", KINDS)
def test_a_large_segment_stays_as_it_is(table: lance.LanceDataset, kind: str) -> None:
    column = KINDS[kind]
    table.create_scalar_index(column, kind)
    (before,) = entries(table.uri)
    for seed in (1, 2):
        lance.dataset(table.uri).insert(rows(10, seed=seed))
        refresh_indices(lance.dataset(table.uri)._snapshot, RefreshOptions(large_rows=50))
    table = lance.dataset(table.uri)
    assert covered(table, f"{column}_idx") == [{0, 1, 2}, {3, 4}]
    assert before.uuid in {entry.uuid for entry in entries(table.uri)}
    assert scan_differences(table.uri, column) == []


@pytest.mark.parametrize("kind", KINDS)
def test_many_rows_are_built_instead_of_merged(table: lance.LanceDataset, kind: str) -> None:
    column = KINDS[kind]
    table.create_scalar_index(column, kind)
    table.insert(rows(10, seed=1))
    built: list[list[int]] = []

    def build(segment: SegmentBuild, folder: SegmentFolder) -> BuiltSegment:
        built.append(list(segment.fragments))
        return built_here(segment, folder)

    at = lance.dataset(table.uri)._snapshot
    refresh_indices(at, RefreshOptions(), IndexRun(builder=build, merged_rows=10))
    assert built == [[0, 1, 2, 3]]
    assert covered(lance.dataset(table.uri), f"{column}_idx") == [{0, 1, 2, 3}]
    assert differences(lance.dataset(table.uri), column) == []


def test_the_record_of_moved_rows_stays_while_a_large_segment_needs_it(tmp_table: str) -> None:
    table = lance.write_dataset(rows(300), tmp_table, max_rows_per_file=100)
    table.create_scalar_index("i", "BTREE")
    table.optimize.compact_files(target_rows_per_fragment=1000, defer_index_remap=True)
    table.insert(rows(10, seed=1))
    assert any(entry.is_system for entry in entries(tmp_table))
    refresh_indices(lance.dataset(tmp_table)._snapshot, RefreshOptions(large_rows=50))
    assert any(entry.is_system for entry in entries(tmp_table))
    assert scan_differences(tmp_table, "i") == []


def test_new_rows_are_indexed_with_the_parameters_of_the_index(tmp_path: pathlib.Path) -> None:
    table = lance.write_dataset(pa.table({"t": ["the alpha"]}), tmp_path / "t.lance")
    table.create_scalar_index("t", "INVERTED", with_position=True, remove_stop_words=False)
    table.insert(pa.table({"t": ["the beta"]}))
    table.optimize.optimize_indices(num_indices_to_merge=0)

    found = [each["params"] for each in table.stats.index_stats("t_idx")["indices"]]
    assert found[0] == found[1]
