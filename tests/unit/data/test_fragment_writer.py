"""Tests of writing streams into data files."""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lance.file import LanceFileReader

import lancelake
from lancelake.data.column_file import WriteCounts, WriteTask, write_fragments
from lancelake.errors import InvalidRequestError, SchemaMismatchError, StorageError
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.fragment import BasePath, FileVersion, Fragment
from lancelake.format.ids import BaseId
from lancelake.proto import file_pb2
from lancelake.pylance.blob import blob_array
from lancelake.storage import disk_sync
from lancelake.storage.location import Location
from tests.support.compare import assert_same_table
from tests.support.written_tables import publish, write_table

TABLE = pa.table({"a": range(10), "b": [f"text {i}" for i in range(10)]})
SCHEMA = from_arrow(TABLE.schema)
DATA_NAME = re.compile(r"[01]{24}[0-9a-f]{26}\.lance")


def _write(root: Path | str, table: pa.Table = TABLE, **options: object) -> tuple[Fragment, ...]:
    settings = {"schema": SCHEMA, **options}
    task = WriteTask(root=Location.parse(root), **settings)  # type: ignore[arg-type]  # as given
    return write_fragments(task, table.to_reader())


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_a_fragment_says_what_its_file_holds(tmp_path: Path) -> None:
    (fragment,) = _write(tmp_path)
    (file,) = fragment.files
    assert (fragment.id, fragment.physical_rows, fragment.row_ids) == (0, 10, None)
    assert (file.fields, file.column_indices) == ((0, 1), (0, 1))
    assert (file.file_major_version, file.file_minor_version) == (2, 1)
    assert file.file_size_bytes == (tmp_path / "data" / file.path).stat().st_size


def test_files_are_named_as_the_format_wants(tmp_path: Path) -> None:
    (fragment,) = _write(tmp_path)
    assert DATA_NAME.fullmatch(fragment.files[0].path)


def test_the_file_carries_the_ids_of_the_table(tmp_path: Path) -> None:
    schema = from_arrow(TABLE.schema, first_id=40)
    (fragment,) = _write(tmp_path, schema=schema)
    descriptor = file_pb2.FileDescriptor()
    reader = LanceFileReader(str(tmp_path / "data" / fragment.files[0].path))
    descriptor.ParseFromString(reader.read_global_buffer(0))
    assert [field.id for field in descriptor.schema.fields] == [40, 41]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_every_version_is_written_as_asked(tmp_path: Path, version: str) -> None:
    (fragment,) = _write(tmp_path, file_version=FileVersion(version))
    assert fragment.files[0].version is FileVersion(version)
    write_table(tmp_path / "t", TABLE, version)
    assert lancelake.dataset(tmp_path / "t").to_table() == TABLE


def test_no_rows_make_no_fragments(tmp_path: Path) -> None:
    assert _write(tmp_path, TABLE.slice(0, 0)) == ()
    assert _files(tmp_path) == []


def test_files_are_cut_at_the_row_limit(tmp_path: Path) -> None:
    fragments = _write(tmp_path, max_rows_per_file=4)
    assert [fragment.physical_rows for fragment in fragments] == [4, 4, 2]


def test_a_file_that_is_just_full_is_not_followed_by_an_empty_one(tmp_path: Path) -> None:
    assert len(_write(tmp_path, max_rows_per_file=5)) == 2


def test_files_are_cut_at_the_size_limit(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 1 << 60, 3_000_000)
    table = pa.table({"a": values, "b": pa.nulls(len(values), pa.string())})
    fragments = _write(tmp_path, table, max_bytes_per_file=9 << 20)
    assert sum(fragment.physical_rows or 0 for fragment in fragments) == len(values)
    assert 2 <= len(fragments) <= 4


def test_a_file_is_not_smaller_than_a_page(tmp_path: Path) -> None:
    table = pa.table({"a": range(100_000), "b": [str(i) for i in range(100_000)]})
    assert len(_write(tmp_path, table, max_bytes_per_file=1024)) == 1


@pytest.mark.parametrize("limit", ["max_rows_per_file", "max_bytes_per_file"])
def test_a_limit_below_one_is_refused(tmp_path: Path, limit: str) -> None:
    with pytest.raises(InvalidRequestError, match=limit):
        _write(tmp_path, **{limit: 0})


def test_a_subset_of_columns_is_all_that_is_stored(tmp_path: Path) -> None:
    (fragment,) = _write(tmp_path, TABLE.select(["b"]))
    assert fragment.files[0].fields == (1,)
    publish(Location.parse(tmp_path), SCHEMA, (fragment,), FileVersion.V2_1)
    assert lancelake.dataset(tmp_path).to_table()["a"].null_count == 10


def test_columns_may_come_in_another_order(tmp_path: Path) -> None:
    fragments = _write(tmp_path, TABLE.select(["b", "a"]))
    publish(Location.parse(tmp_path), SCHEMA, fragments, FileVersion.V2_1)
    assert lancelake.dataset(tmp_path).to_table() == TABLE


def test_data_that_does_not_fit_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(SchemaMismatchError):
        _write(tmp_path, pa.table({"a": ["text"]}))
    assert _files(tmp_path) == []


def _failing(table: pa.Table, error: BaseException) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        # Enough that batches are not gathered to one that is never written.
        yield from table.to_batches()
        yield from pa.concat_tables([table] * 3_000).combine_chunks().to_batches()
        raise error

    return pa.RecordBatchReader.from_batches(table.schema, batches())


@pytest.mark.parametrize("error", [ZeroDivisionError(), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("root", ["disk", "memory"])
def test_a_failing_source_leaves_no_files(tmp_path: Path, root: str, error: BaseException) -> None:
    wide = pa.table({"a": range(10), "b": ["x" * 2_000] * 10})
    place = Location.parse(tmp_path if root == "disk" else f"memory://m{tmp_path.name}")
    task = WriteTask(root=place, schema=from_arrow(wide.schema), max_rows_per_file=4_000)
    with pytest.raises(type(error)):
        write_fragments(task, _failing(wide, error))
    assert list(place.store.list()) == []


def test_a_failing_source_leaves_no_blobs_beside_its_files(tmp_path: Path) -> None:
    rows = pa.table({"b": blob_array([bytes(100_000), bytes(5_000_000)] * 5)})
    with pytest.raises(ZeroDivisionError):
        task = WriteTask(
            root=Location.parse(tmp_path),
            schema=from_arrow(rows.schema),
            file_version=FileVersion.V2_2,
            max_rows_per_file=4,
        )
        write_fragments(task, _once(rows))
    assert _files(tmp_path) == []


def _once(table: pa.Table) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from table.to_batches()
        raise ZeroDivisionError

    return pa.RecordBatchReader.from_batches(table.schema, batches())


def test_files_that_a_watch_knows_are_left_to_it(tmp_path: Path) -> None:
    wide = pa.table({"a": range(10), "b": ["x" * 2_000] * 10})
    root, schema = Location.parse(tmp_path), from_arrow(wide.schema)
    task = WriteTask(root=root, schema=schema, max_rows_per_file=10_000)
    notes = _Notes()
    with pytest.raises(ZeroDivisionError):
        write_fragments(task, _failing(wide, ZeroDivisionError()), watch=notes)
    completed = [fragment.files[0].path for event, fragment in notes.told if event == "completed"]
    assert len(completed) == 3
    assert {path.name for path in _files(tmp_path)} >= set(completed)


def test_a_folder_that_cannot_be_made_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where the folder should be")
    with pytest.raises(StorageError):
        _write(tmp_path)


def test_files_and_folder_are_on_disk_before_the_fragments_are_returned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def recorded(fd: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{fd}"))  # noqa: PTH115  # a path, not a link
        fsync(fd)

    monkeypatch.setattr(disk_sync.os, "fsync", recorded)
    fragments = _write(tmp_path / "t", max_rows_per_file=4)
    data = str(tmp_path / "t" / "data")
    files = [f"{data}/{fragment.files[0].path}" for fragment in fragments]
    assert synced[:2] == [str(tmp_path), str(tmp_path / "t")]
    assert sorted(synced[2:-1]) == sorted(files)
    assert synced[-1] == data


def test_progress_counts_up_to_the_result(tmp_path: Path) -> None:
    seen: list[WriteCounts] = []
    task = WriteTask(root=Location.parse(tmp_path), schema=SCHEMA, max_rows_per_file=4)
    fragments = write_fragments(task, TABLE.to_reader(), progress=seen.append)
    assert seen[-1] == WriteCounts.of(fragments)
    assert [counts.rows for counts in seen] == sorted(counts.rows for counts in seen)
    assert (seen[-1].rows, seen[-1].files) == (10, 3)


def test_memory_tables_get_their_files(tmp_path: Path) -> None:
    root = Location.parse("shared-memory://test-fragment-writer/t")
    fragments = _write(root.uri)
    info = root.store.head(f"data/{fragments[0].files[0].path}")
    assert info.size_bytes == fragments[0].files[0].file_size_bytes
    publish(root, SCHEMA, fragments, FileVersion.V2_1)
    assert lancelake.dataset(root.uri).to_table() == TABLE


@pytest.mark.parametrize(("is_root", "folder"), [(True, "data"), (False, ".")])
def test_files_go_to_the_base_path(tmp_path: Path, is_root: bool, folder: str) -> None:
    other = tmp_path / "other"
    base = BasePath(id=BaseId(3), is_dataset_root=is_root, path=str(other))
    (fragment,) = _write(tmp_path / "t", bases=(base,))
    assert fragment.files[0].base_id == 3
    assert (other / folder / fragment.files[0].path).exists()


def test_files_go_to_several_places_in_turn(tmp_path: Path) -> None:
    bases = [
        BasePath(id=BaseId(i), is_dataset_root=False, path=str(tmp_path / str(i))) for i in (1, 2)
    ]
    made = _write(tmp_path / "t", bases=(*bases, None), max_rows_per_file=2)
    assert [fragment.files[0].base_id for fragment in made] == [1, 2, None, 1, 2]
    assert (tmp_path / "2" / made[4].files[0].path).exists()
    assert [path.name for path in _files(tmp_path / "t")] == [made[2].files[0].path]


def test_files_without_a_place_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="no base"):
        _write(tmp_path, bases=())


class _Notes:
    """What a watch was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Fragment]] = []

    def begun(self, fragment: Fragment) -> None:
        self.told.append(("begun", fragment))

    def completed(self, fragment: Fragment) -> None:
        self.told.append(("completed", fragment))


def test_a_watch_gets_every_file(tmp_path: Path) -> None:
    task = WriteTask(root=Location.parse(tmp_path), schema=SCHEMA, max_rows_per_file=4)
    notes = _Notes()
    made = write_fragments(task, TABLE.to_reader(), watch=notes)
    begun = [fragment for what, fragment in notes.told if what == "begun"]
    assert [fragment for what, fragment in notes.told if what == "completed"] == list(made)
    assert [(f.files[0].path, f.files[0].fields, f.physical_rows) for f in begun] == [
        (f.files[0].path, (), None) for f in made
    ]


@pytest.mark.parametrize("name", ["with blank", "50%", "a#b", "ä?b", "x%20y"])
def test_odd_folder_names_are_taken_literally(tmp_path: Path, name: str) -> None:
    write_table(tmp_path / name, TABLE, "2.1")
    assert lancelake.dataset(tmp_path / name).to_table() == TABLE
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_task_survives_pickling() -> None:
    task = WriteTask(root=Location.parse("memory://m"), schema=SCHEMA, max_rows_per_file=7)
    assert pickle.loads(pickle.dumps(task)) == task


def test_small_batches_are_joined_with_their_dictionaries(tmp_path: Path) -> None:
    parts = [pa.table({"d": pa.array([w]).dictionary_encode()}) for w in ("a", "b", "a")]
    schema = parts[0].schema
    reader = pa.RecordBatchReader.from_batches(schema, (b for p in parts for b in p.to_batches()))
    root = Location.parse(tmp_path)
    table_schema = from_arrow(schema)
    task = WriteTask(root=root, schema=table_schema)
    publish(root, table_schema, write_fragments(task, reader), FileVersion.V2_1)
    assert lancelake.dataset(tmp_path).to_table()["d"].to_pylist() == ["a", "b", "a"]


def test_decimals_that_are_not_aligned_are_written(tmp_path: Path) -> None:
    values = pa.array([1, 2, 3, 4], pa.decimal128(20, 0))
    raw = b"\0" * 8 + values.buffers()[1].to_pybytes()
    odd = pa.Array.from_buffers(values.type, 4, [None, pa.py_buffer(raw).slice(8)])
    write_table(tmp_path, pa.table({"c": odd}), "2.1")
    assert lancelake.dataset(tmp_path).to_table()["c"].to_pylist() == values.to_pylist()


@pytest.mark.parametrize("rows", [3, 4, 5, 100])
def test_structs_with_nulls_are_split_at_any_row(tmp_path: Path, rows: int) -> None:
    members = [pa.array([i % 2 == 0 for i in range(9)]), pa.array([f"{i}" for i in range(9)])]
    nulls = pa.array([i == 7 for i in range(9)])
    table = pa.table({"s": pa.StructArray.from_arrays(members, names=["x", "y"], mask=nulls)})
    written = _write(tmp_path, table, schema=from_arrow(table.schema), max_rows_per_file=rows)
    assert sum(fragment.physical_rows or 0 for fragment in written) == 9
    parts = [LanceFileReader(str(tmp_path / "data" / f.files[0].path)) for f in written]
    found = [part.read_all().to_table() for part in parts]
    assert pa.concat_tables(found).to_pylist() == table.to_pylist()


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_slices_of_structs_in_structs_are_written(tmp_path: Path, version: str) -> None:
    table = pa.table({"c": [{"p": {"x": i, "l": [{"y": i}]}} for i in range(9)]})
    write_table(tmp_path, table, version, max_rows_per_file=2)
    assert lancelake.dataset(tmp_path).to_table() == table


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_lists_that_are_empty_in_one_file_only_are_written(tmp_path: Path, version: str) -> None:
    values = [[{"s": "x" * 3000}], [], [], [{"s": "y"}], []]
    table = pa.table({"c": values, "d": [["z" * 3000], [], [], ["y"], []]})
    write_table(tmp_path, table, version, max_rows_per_file=1)
    assert lancelake.dataset(tmp_path).to_table() == table


@given(cuts=st.lists(st.integers(1, 5), max_size=8), limit=st.integers(1, 12))
def test_any_cut_into_batches_and_files_keeps_the_rows(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], limit: int
) -> None:
    lists = pa.array([list(range(i)) for i in range(sum(cuts))], pa.list_(pa.int64()))
    table = pa.table({"a": range(sum(cuts)), "l": lists})
    batches, start = [], 0
    for rows in cuts:
        batches += table.slice(start, rows).to_batches()
        start += rows
    root = Location.parse(tmp_path_factory.mktemp("cuts"))
    schema = from_arrow(table.schema)
    task = WriteTask(root=root, schema=schema, max_rows_per_file=limit)
    reader = pa.RecordBatchReader.from_batches(table.schema, batches)
    fragments = write_fragments(task, reader)
    assert all((fragment.physical_rows or 0) <= limit for fragment in fragments)
    publish(root, schema, fragments, FileVersion.V2_1)
    assert_same_table(lancelake.dataset(root.uri).to_table(), table)
