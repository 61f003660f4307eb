"""Unusual index entries of other writers are read correctly, and ours are what they expect."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from tests.support.index_tables import entries_of
from tests.support.official import Official

ROWS = 600
WORKERS = """
import uuid
ds = lance.dataset(uri)
unique = str(uuid.uuid4())
for fragment in ds.get_fragments():
    ds.create_scalar_index(
        "v", "BTREE", name="v_idx", replace=False, index_uuid=unique,
        fragment_ids=[fragment.fragment_id],
    )
ds.merge_index_metadata(unique, "BTREE")
from lance.dataset import Index
fragments = {f.fragment_id for f in ds.get_fragments()}
field = ds.schema.get_field_index("v")
entry = Index(
    uuid=unique, name="v_idx", fields=[field], dataset_version=ds.version,
    fragment_ids=fragments, index_version=0,
)
operation = lance.LanceOperation.CreateIndex(new_indices=[entry], removed_indices=[])
lance.LanceDataset.commit(uri, operation, read_version=ds.version)
result = None
"""
JSON = """
ds = lance.dataset(uri)
options = {"target_index_type": "btree", "path": "$.n"}
ds.create_scalar_index("j", lance.indices.IndexConfig("json", options), name="json")
result = None
"""
ASK_JSON = """
ds = lance.dataset(uri)
text = "json_get_int(j, 'n') < 9"
result = [
    [i["name"] for i in ds.list_indices()],
    sorted(ds.to_table(filter=text, columns=["v"])["v"].to_pylist()),
    sorted(ds.to_table(filter=text, columns=["v"], use_scalar_index=False)["v"].to_pylist()),
]
"""


def rows(first: int = 0, count: int = ROWS) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table({"v": numbers, "k": [n % 5 for n in numbers]})


def test_an_entry_without_details_is_used(official_4: Official, tmp_table: str) -> None:
    official_4.write(tmp_table, rows(), max_rows_per_file=200)
    official_4.run(tmp_table, WORKERS)
    (entry,) = entries_of(tmp_table)
    assert entry.details is None
    table = lance.dataset(tmp_table)
    request = ScanRequest(columns=("v",), filter="v IN (7, 300)")
    assert plan(table._snapshot, request).index_search is not None
    assert sorted(table.to_table(filter="v IN (7, 300)")["v"].to_pylist()) == [7, 300]


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"])
def test_recorded_sizes_are_those_of_the_files(kind: str, tmp_table: str) -> None:
    table = lance.write_dataset(rows(), tmp_table, max_rows_per_file=200)
    table.create_scalar_index("k", kind)
    table.insert(rows(ROWS, 50))
    table.delete("v % 7 = 3")
    table.optimize.optimize_indices()
    table.optimize.compact_files()
    table.optimize.optimize_indices()
    for entry in entries_of(tmp_table):
        folder = Path(tmp_table, "_indices", str(entry.uuid))
        sizes = {file.path: file.size_bytes for file in entry.files}
        assert sizes == {path.name: path.stat().st_size for path in folder.iterdir()}


def test_a_refresh_leaves_one_segment(tmp_table: str) -> None:
    """Release 4.0.2 searches one scalar segment of a name, and scans what others cover."""
    table = lance.write_dataset(rows(), tmp_table)
    table.create_scalar_index("v", "BTREE")
    for number in range(3):
        table.insert(rows(ROWS + 10 * number, 10))
    table.optimize.optimize_indices()
    assert [entry.name for entry in entries_of(tmp_table)] == ["v_idx"]


def test_an_index_of_an_unknown_kind_is_kept_and_answers_its_release(
    official_14: Official, tmp_table: str
) -> None:
    documents = pa.array([f'{{"n": {n}}}' for n in range(30)], pa.json_())
    official_14.write(
        tmp_table,
        pa.table({"v": range(30), "j": documents}),
        max_rows_per_file=10,
        data_storage_version="2.1",
    )
    official_14.run(tmp_table, JSON)
    table = lance.dataset(tmp_table)
    table.insert(pa.table({"v": [3], "j": pa.array(['{"n": 3}'], pa.json_())}))
    table.delete("v = 5")
    table.update({"v": "v"}, where="v = 6")
    table.optimize.optimize_indices()
    table.optimize.compact_files()
    names, by_index, by_scan = official_14.run(tmp_table, ASK_JSON)
    assert names == ["json"]
    assert by_index == by_scan == [0, 1, 2, 3, 3, 4, 6, 7, 8]
    request = ScanRequest(columns=("v",), filter="v < 9", fast_search=False)
    assert plan(lance.dataset(tmp_table)._snapshot, request).index_search is None
