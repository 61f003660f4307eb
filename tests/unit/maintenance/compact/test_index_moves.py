"""Row moves are recorded as in official Lance."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.commit.snapshot import Snapshot
from lancelake.format.index_meta import FRAGMENT_REUSE, IndexMetadata
from lancelake.maintenance.compact import run
from lancelake.maintenance.compact.plan import coverage_by_index
from lancelake.proto import table_pb2
from tests.support.official import Official

ASK = "result = sorted(lance.dataset(uri).to_table(filter='id > 7 AND id < 33')['id'].to_pylist())"
UNCOVERED = "result = lance.dataset(uri).stats.index_stats('id_idx')['num_unindexed_rows']"
OPTIONS = {"target_rows_per_fragment": 20, "defer_index_remap": True}


@pytest.fixture
def uri(official_14: Official, tmp_path: Path) -> Path:
    """Return an indexed table of six fragments; some rows were deleted after."""
    place = tmp_path / "t.lance"
    rows = pa.table({"id": pa.array(range(60), pa.int64())})
    official_14.write(place, rows, max_rows_per_file=10, data_storage_version="2.1")
    official_14.create_scalar_index(place, "id", "BTREE")
    official_14.delete(place, "id IN (3, 4, 25)")
    return place


def record(uri: Path) -> IndexMetadata | None:
    indices = lance.dataset(uri)._snapshot.indices
    return next((i for i in indices if i.name == FRAGMENT_REUSE), None)


def details(uri: Path) -> table_pb2.FragmentReuseIndexDetails:
    entry = record(uri)
    assert entry is not None
    assert entry.details is not None
    return table_pb2.FragmentReuseIndexDetails.FromString(entry.details.value)


def snapshot(uri: Path) -> Snapshot:
    return lance.dataset(uri)._snapshot


def test_the_record_is_that_of_official_lance(uri: Path, official_14: Official) -> None:
    copy = Path(shutil.copytree(uri, uri.parent / "copy.lance"))
    official_14.compact(copy, **OPTIONS)
    lance.dataset(uri).optimize.compact_files(**OPTIONS)  # type: ignore[arg-type]  # by name
    assert details(uri) == details(copy)
    ours, theirs = record(uri), record(copy)
    assert ours is not None
    assert theirs is not None
    assert ours.dataset_version == theirs.dataset_version
    assert ours.fragments() == theirs.fragments()


def test_indices_cover_the_fragments_that_rows_went_to(uri: Path) -> None:
    dataset = lance.dataset(uri)
    dataset.optimize.compact_files(**OPTIONS)  # type: ignore[arg-type]  # by name
    ids = {fragment.fragment_id for fragment in dataset.get_fragments()}
    assert [set(covered) for covered in coverage_by_index(snapshot(uri))] == [ids]


def test_without_a_record_the_index_is_written_again(uri: Path, official_14: Official) -> None:
    before = official_14.run(uri, ASK)
    lance.dataset(uri).optimize.compact_files(target_rows_per_fragment=20)
    assert record(uri) is None
    assert official_14.run(uri, UNCOVERED) == 0
    assert official_14.run(uri, ASK) == before


def test_a_large_record_is_in_a_file_and_is_followed(
    uri: Path, official_14: Official, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_MOST_INLINE_BYTES", 10)
    before = official_14.run(uri, ASK)
    for rows in (20, 100):
        options = OPTIONS | {"target_rows_per_fragment": rows}
        lance.dataset(uri).optimize.compact_files(**options)  # type: ignore[arg-type]  # by name
        assert details(uri).WhichOneof("content") == "external"
        assert official_14.run(uri, ASK) == before
        assert official_14.run(uri, UNCOVERED) == 0


def test_a_table_without_indices_needs_no_record(tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array(range(60), pa.int64())})
    place = tmp_path / "plain.lance"
    dataset = lance.write_dataset(rows, place, max_rows_per_file=10)
    dataset.optimize.compact_files(**OPTIONS)  # type: ignore[arg-type]  # by name
    assert record(place) is None


def test_sorted_rows_cannot_be_followed(uri: Path, official_14: Official) -> None:
    before = official_14.run(uri, ASK)
    dataset = lance.dataset(uri)
    order = [lance.ColumnOrdering("id", ascending=False)]
    dataset.optimize.compact_files(**OPTIONS, sort_by=order)  # type: ignore[arg-type]  # by name
    assert record(uri) is None
    assert official_14.run(uri, ASK) == before
