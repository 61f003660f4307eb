"""Statistics of a version match its files."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lancelake.commit.snapshot import Latest, Snapshot, open_snapshot
from lancelake.storage.location import Location
from lancelake.table.statistics import column_bytes, dataset_counts
from tests.support.read_tables import varied


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """Return a table whose fragments have 10, 10, 10, 6 and 1 rows."""
    table = varied(tmp_path_factory.mktemp("statistics") / "t.lance")
    return open_snapshot(Location.parse(table.uri), Latest())


@pytest.mark.parametrize(("rows", "small"), [(1, 0), (2, 1), (6, 1), (7, 2), (10, 2), (11, 5)])
def test_small_fragments_have_fewer_rows(snapshot: Snapshot, rows: int, small: int) -> None:
    counts = dataset_counts(snapshot, rows)
    assert (counts.num_fragments, counts.num_small_files, counts.num_deleted_rows) == (5, small, 10)


def test_sizes_are_those_of_official_lance(snapshot: Snapshot) -> None:
    told = lance.dataset(snapshot.location.uri).stats.data_stats().fields
    assert column_bytes(snapshot) == {field.id: field.bytes_on_disk for field in told}


def test_column_that_was_never_written_takes_nothing(tmp_path: Path) -> None:
    table = lance.write_dataset(pa.table({"a": [1]}), tmp_path / "t", data_storage_version="2.1")
    table.add_columns(pa.field("z", pa.string()))
    sizes = column_bytes(open_snapshot(Location.parse(tmp_path / "t"), Latest()))
    assert sizes[1] == 0
    assert sizes[0] > 0
