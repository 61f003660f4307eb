"""The rows of a fragment are those of its files."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.commit.snapshot import Snapshot
from lancelake.data import fragment_reader
from lancelake.data.column_reader import project
from lancelake.data.fragment_reader import FragmentReader, open_columns
from lancelake.errors import CorruptTableError
from lancelake.format.fragment import Fragment
from lancelake.proto.table_pb2 import Manifest
from lancelake.pylance import blob_array, blob_field
from tests.support.compare import assert_same_table
from tests.support.read_tables import open_source, rows, varied
from tests.support.table_surgery import edit_manifest

COLUMNS = ("key", "st", "n", "z")
WAIT_S = 30


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """Return a table whose fragments differ."""
    return open_source(varied(tmp_path_factory.mktemp("fragments") / "t.lance").uri)


def reader(source: Snapshot, number: int, *columns: str) -> FragmentReader:
    return reader_of(source, source.manifest.fragments[number], *columns)


def reader_of(source: Snapshot, fragment: Fragment, *columns: str) -> FragmentReader:
    schema = project(source.manifest.schema, tuple((name,) for name in columns))
    return FragmentReader(source.files, source.manifest_at, fragment, schema)


def expected(keys: range) -> pa.Table:
    """Return rows by key with the columns that were added later."""
    table = rows(keys.start, keys.stop).select(["key", "st"])
    table = table.append_column("n", pa.array([2 * key for key in keys], pa.int64()))
    empty = pa.nulls(len(keys), pa.struct([("q", pa.int8())]))
    return live(table.append_column("z", empty))


def live(table: pa.Table) -> pa.Table:
    """Leave out rows that were deleted before `n` was added: any value may stand there."""
    return table.filter(pa.array([key % 4 != 1 for key in table["key"].to_pylist()], pa.bool_()))


@pytest.mark.parametrize("batch_rows", [1, 3, 10, 1000])
@pytest.mark.parametrize(("start", "stop"), [(0, 10), (3, 8), (9, 10), (5, 5)])
def test_range_of_rows_comes_in_batches(
    source: Snapshot, batch_rows: int, start: int, stop: int
) -> None:
    wanted = reader(source, 1, *COLUMNS)
    batches = list(wanted.batches(start=start, stop=stop, batch_rows=batch_rows))
    assert all(batch.num_rows == batch_rows for batch in batches[:-1])
    whole = expected(range(10 + start, 10 + stop))
    assert sum(batch.num_rows for batch in batches) == stop - start
    assert_same_table(live(pa.Table.from_batches(batches, schema=whole.schema)), whole)


def test_rows_are_taken_by_offset(source: Snapshot) -> None:
    found = reader(source, 2, *COLUMNS).take(np.array([0, 4, 8], dtype=np.uint64))
    assert found.select(["key", "n"]).to_pylist() == [{"key": k, "n": 2 * k} for k in (20, 24, 28)]


def test_no_rows_are_taken(source: Snapshot) -> None:
    found = reader(source, 2, *COLUMNS).take(np.array([], dtype=np.uint64))
    assert (found.num_rows, found.schema.names) == (0, list(COLUMNS))


def test_columns_of_no_file_are_null(source: Snapshot) -> None:
    (batch,) = reader(source, 3, "n", "z").batches(start=0, stop=6, batch_rows=100)
    assert [column.null_count for column in batch.columns] == [6, 6]


def test_no_columns_have_rows_all_the_same(source: Snapshot) -> None:
    sizes = [b.num_rows for b in reader(source, 0).batches(start=0, stop=10, batch_rows=4)]
    assert sizes == [4, 4, 2]


@pytest.mark.parametrize(("number", "count"), [(0, 10), (3, 6), (4, 1)])
def test_files_have_the_number_of_rows(source: Snapshot, number: int, count: int) -> None:
    bare = replace(source.manifest.fragments[number], physical_rows=None)
    assert reader_of(source, bare, "key").physical_rows == count


def test_fragment_without_files_has_no_rows(source: Snapshot) -> None:
    bare = replace(source.manifest.fragments[0], files=(), physical_rows=None)
    assert reader_of(source, bare, "key").physical_rows == 0


def test_file_with_another_number_of_rows_is_damage(source: Snapshot) -> None:
    fragment = source.manifest.fragments[0]
    wrong = replace(fragment, physical_rows=11)
    with pytest.raises(CorruptTableError, match=f"{fragment.files[0].path} has 10 rows"):
        next(reader_of(source, wrong, "key").batches(start=0, stop=11, batch_rows=100))


def test_files_of_different_lengths_are_damage(source: Snapshot) -> None:
    first, other = source.manifest.fragments[0], source.manifest.fragments[3]
    mixed = replace(first, files=(first.files[1], other.files[0]), physical_rows=10)
    with pytest.raises(CorruptTableError, match="rows"):
        next(reader_of(source, mixed, "key", "n").batches(start=0, stop=10, batch_rows=100))


def test_file_that_is_slow_to_open_does_not_stop_other_fragments(
    source: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, done = threading.Event(), threading.Event()
    slow = source.manifest.fragments[0].files[0].path
    opened = open_columns

    def waiting(files: Any, part: Any, manifest: Any, **how: Any) -> Any:
        if part.file.path == slow:
            started.set()
            done.wait(WAIT_S)
        return opened(files, part, manifest, **how)

    monkeypatch.setattr(fragment_reader, "open_columns", waiting)
    first = np.array([0], dtype=np.uint64)
    thread = threading.Thread(target=lambda: reader(source, 0, "key").take(first))
    thread.start()
    assert started.wait(WAIT_S)
    assert reader(source, 1, "key").take(first)["key"].to_pylist() == [10]
    assert thread.is_alive()
    done.set()
    thread.join(WAIT_S)


def test_two_fields_that_claim_the_column_of_a_blob_are_corrupt(tmp_path: Path) -> None:
    schema = pa.schema([blob_field("blob"), pa.field("id", pa.int64())])
    rows = pa.table([blob_array([b"a", b"b"]), pa.array([1, 2])], schema=schema)
    root = tmp_path / "t.lance"
    lance.write_dataset(rows, root, data_storage_version="2.2")

    def claim(manifest: Manifest) -> None:
        columns = manifest.fragments[0].files[0].column_indices
        columns[1] = columns[0]

    edit_manifest(root, claim)
    with pytest.raises(CorruptTableError):
        lance.dataset(root).to_table()
