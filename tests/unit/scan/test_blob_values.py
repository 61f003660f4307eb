"""Blobs as bytes in small batches."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lancelake.commit.snapshot import Snapshot
from lancelake.scan import task_rows
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.stream import run
from tests.support.read_tables import open_source

BLOB = {"lance-encoding:blob": "true"}
VALUES = [b"a" * 40, None, b"b" * 70, b"", b"c" * 20, b"d" * 30, b"e" * 150]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """Return a table of blobs, at the top and in a struct."""
    uri = tmp_path_factory.mktemp("blobs") / "t.lance"
    member = pa.struct([pa.field("c", pa.large_binary(), metadata=BLOB)])
    fields = [pa.field("b", pa.large_binary(), metadata=BLOB), pa.field("s", member)]
    structs = [None if value is None else {"c": value} for value in VALUES]
    columns = [pa.array(VALUES, pa.large_binary()), pa.array(structs, member)]
    table = pa.table(columns, schema=pa.schema(fields))
    lance.write_dataset(table, uri, data_storage_version="2.1")
    return open_source(Path(uri))


def rows(source: Snapshot, *columns: str) -> list[pa.RecordBatch]:
    """Read columns with their blobs as bytes."""
    return list(run(plan(source, ScanRequest(columns=columns, blob_values=True))))


def test_batches_are_cut_where_their_blobs_become_too_large(
    source: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_rows, "_BATCH_BYTES", 100)
    found = rows(source, "b")
    assert [batch.num_rows for batch in found] == [2, 3, 1, 1]
    assert [value for batch in found for value in batch.column(0).to_pylist()] == VALUES


def test_blobs_inside_structs_count_as_well(
    source: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_rows, "_BATCH_BYTES", 100)
    found = rows(source, "b", "s")
    assert [batch.num_rows for batch in found] == [2, 1, 3, 1]


def test_descriptions_are_left_as_they_are(source: Snapshot) -> None:
    (batch,) = run(plan(source, ScanRequest(columns=("b",))))
    assert pa.types.is_struct(batch.schema.field("b").type)


def test_a_scan_without_blobs_is_none_of_its_business(source: Snapshot) -> None:
    scan = plan(source, ScanRequest(columns=("_rowid",), blob_values=True))
    assert scan.spec.valued_schema is None
