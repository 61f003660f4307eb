"""Real tables of early releases, including their peculiarities."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from lancelake.pylance import ScanStatistics
from tests.support.compare import assert_same_schema, assert_same_table
from tests.support.official import Official
from tests.support.readers import LancelakeReader, OfficialReader, face

REPO = Path(__file__).resolve().parents[2]
TESTDATA = Path(os.environ.get("LANCELAKE_TESTDATA", REPO.parent / "shared" / "testdata"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Historic:
    """One historic table and what a correct reader finds in it."""

    path: str
    rows: Mapping[int, int]
    storage: str
    columns: tuple[str, ...]
    indices: tuple[str, ...] = ()
    config: Mapping[str, str] = field(default_factory=dict)

    @property
    def latest(self) -> int:
        """Return the newest version."""
        return max(self.rows)


CLEANUP = {"lance.auto_cleanup.interval": "20", "lance.auto_cleanup.older_than": "14days"}
TABLES = (
    # Manifests without row counts: rows are counted from the data file.
    Historic(path="v0.7.5/with_deletions", rows={1: 100, 2: 90}, storage="0.1", columns=("x",)),
    # The migration recorded 90 rows where the file has 100; no writer version means: do not trust.
    Historic(
        path="v0.8.0/migrated_from_v0.7.5",
        rows={1: 100, 2: 90, 3: 92},
        storage="0.1",
        columns=("x",),
    ),
    Historic(
        path="v0.10.5/corrupt_schema",
        rows={1: 2, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4},
        storage="0.1",
        columns=("x", "y", "b", "c"),
    ),
    Historic(path="v0.15.0/v1_no_files.lance", rows={1: 0}, storage="0.1", columns=("x",)),
    Historic(path="v0.15.0/v1_with_files.lance", rows={1: 3}, storage="0.1", columns=("x",)),
    Historic(path="v0.15.0/v2_no_files.lance", rows={1: 0}, storage="2.0", columns=("x",)),
    Historic(path="v0.15.0/v2_with_files.lance", rows={1: 3}, storage="2.0", columns=("x",)),
    Historic(
        path="v0.20.0/old_btree_bitmap_indices.lance",
        rows={1: 4, 2: 4, 3: 4},
        storage="2.0",
        columns=("bitmap", "btree"),
        indices=("bitmap_idx", "btree_idx"),
    ),
    Historic(
        path="v0.27.1/pq_in_schema",
        rows={1: 512, 2: 512},
        storage="2.0",
        columns=("id", "vec"),
        indices=("vec_idx",),
        config=CLEANUP,
    ),
    Historic(
        path="0.36.0/btree_in_index_pkg.lance",
        rows={1: 1000, 2: 1000},
        storage="2.0",
        columns=("x",),
        indices=("x_idx",),
    ),
)
each_table = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.path)


@pytest.fixture
def copies(tmp_path: Path) -> Path:
    """Return a folder with copies of all historic tables."""
    if not TESTDATA.is_dir():
        pytest.skip(f"no historic tables at {TESTDATA}; LANCELAKE_TESTDATA may name their folder")
    target = tmp_path / "testdata"
    shutil.copytree(TESTDATA, target)
    return target


def at(copies: Path, table: Historic) -> str:
    """Return the copy of a table."""
    return str(copies / table.path)


def test_every_historic_table_is_expected(copies: Path) -> None:
    found = {p.parent.relative_to(copies).as_posix() for p in copies.rglob("_versions")}
    assert found == {table.path for table in TABLES}


@each_table
def test_versions_and_their_row_counts(copies: Path, table: Historic) -> None:
    uri = at(copies, table)
    versions = [v["version"] for v in face.dataset(uri).versions()]
    counts = {v: face.dataset(uri, version=v).count_rows() for v in versions}
    scanned = {v: face.dataset(uri, version=v).to_table().num_rows for v in versions}
    assert counts == scanned == table.rows


@each_table
def test_latest_version_and_columns(copies: Path, table: Historic) -> None:
    dataset = face.dataset(at(copies, table))
    assert (dataset.version, tuple(dataset.schema.names)) == (table.latest, table.columns)


@each_table
def test_data_storage_version_is_known_or_inferred(copies: Path, table: Historic) -> None:
    assert face.dataset(at(copies, table)).data_storage_version == table.storage


@each_table
def test_indices_and_config_are_listed(copies: Path, table: Historic) -> None:
    dataset = face.dataset(at(copies, table))
    names = tuple(sorted(index["name"] for index in dataset.list_indices()))
    assert (names, dataset.config()) == (table.indices, table.config)


@each_table
def test_every_version_reads_as_official_releases_read_it(
    copies: Path, table: Historic, official: Official
) -> None:
    uri, judge, subject = at(copies, table), OfficialReader(official), LancelakeReader()
    for version in table.rows:
        assert_same_schema(subject.schema(uri, version), judge.schema(uri, version))
        options = {"with_row_id": True, "with_row_address": True}
        actual = subject.read(uri, version, **options)
        assert_same_table(actual, judge.read(uri, version, **options))


@each_table
def test_filters_and_takes_answer_as_official_releases_do(
    copies: Path, table: Historic, official: Official
) -> None:
    uri, judge, subject = at(copies, table), OfficialReader(official), LancelakeReader()
    where = f"{table.columns[0]} >= 2"
    expected = judge.read(uri, table.latest, filter=where)
    assert_same_table(subject.read(uri, table.latest, filter=where), expected)
    places = [i for i in (0, 1, 50, 89) if i < table.rows[table.latest]]
    taken = judge.take(uri, table.latest, places, None)
    assert_same_table(subject.take(uri, table.latest, places, None), taken)


@each_table
def test_reading_writes_nothing(copies: Path, table: Historic) -> None:
    folder = copies / table.path
    before = {p: p.stat().st_size for p in folder.rglob("*")}
    face.dataset(str(folder)).to_table()
    assert {p: p.stat().st_size for p in folder.rglob("*")} == before


def test_duplicate_field_ids_read_the_first_file_that_lists_them(copies: Path) -> None:
    rows = face.dataset(str(copies / "v0.10.5/corrupt_schema")).to_table()
    expected = {"x": [0, 1, 2, 3], "y": [0, 2, 4, 6], "b": [0, 3, 6, 9], "c": [0, -1, -2, -3]}
    assert rows.to_pydict() == expected


def test_deleted_rows_are_gone_although_nothing_counts_them(copies: Path) -> None:
    before = face.dataset(str(copies / "v0.7.5/with_deletions"), version=1).to_table()
    after = face.dataset(str(copies / "v0.7.5/with_deletions")).to_table()
    gone = set(before["x"].to_pylist()) - set(after["x"].to_pylist())
    assert len(gone) == 10
    assert after["x"].to_pylist() == [x for x in before["x"].to_pylist() if x not in gone]


def test_vectors_are_searched_by_an_index_with_its_codebook_in_its_settings(copies: Path) -> None:
    dataset = face.dataset(str(copies / "v0.27.1/pq_in_schema"))
    (query,) = dataset.take([5], ["vec"])["vec"].to_pylist()
    nearest = {"column": "vec", "q": query, "k": 5, "nprobes": 20, "refine_factor": 5}
    assert "ANNSubIndex" in dataset.scanner(nearest=nearest).explain_plan()
    found = dataset.to_table(["id"], nearest=nearest)
    assert (found["id"][0].as_py(), found["_distance"][0].as_py()) == (5, 0.0)


def test_vectors_survive_beside_an_old_vector_index(copies: Path) -> None:
    vectors = face.dataset(str(copies / "v0.27.1/pq_in_schema")).to_table()["vec"]
    assert vectors.type == pa.list_(pa.float32(), 32)
    assert vectors.null_count == 0


@pytest.mark.parametrize("column", ["bitmap", "btree"])
def test_indices_of_release_0_20_are_used(copies: Path, column: str) -> None:
    dataset = face.dataset(str(copies / "v0.20.0/old_btree_bitmap_indices.lance"))
    counted: list[ScanStatistics] = []
    scan = dataset.scanner(filter=f"{column} = 2", scan_stats_callback=counted.append)
    assert scan.to_table().to_pydict() == {"bitmap": [2], "btree": [2]}
    assert "ScalarIndexQuery" in scan.explain_plan()
    assert counted[0].parts_loaded > 0
    scan = dataset.scanner(filter=f"{column} > 2")
    assert scan.to_table().to_pydict() == {"bitmap": [3, 4], "btree": [3, 4]}
