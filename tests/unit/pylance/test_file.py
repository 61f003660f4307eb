"""Single data files, and the counters of their reads."""

from __future__ import annotations

from inspect import signature
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.pylance import file


def test_a_file_is_written_and_read(tmp_path: Path) -> None:
    with file.LanceFileWriter(str(tmp_path / "f.lance")) as writer:
        writer.write_batch(pa.table({"a": [1, 2]}))
    read = file.LanceFileReader(str(tmp_path / "f.lance")).read_all().to_table()
    assert read.to_pydict() == {"a": [1, 2]}


def test_a_dataset_opens_files_below_its_root(tmp_path: Path) -> None:
    made = lance.write_dataset(pa.table({"a": [1, 2]}), tmp_path / "t")
    path = made.get_fragments()[0].data_files()[0].path
    reader = made.new_file_session().open_reader(f"data/{path}")
    assert reader.read_all().to_table().to_pydict() == {"a": [1, 2]}


def test_other_names_are_missing() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = file.nothing


def test_reads_are_counted(tmp_path: Path) -> None:
    made = lance.write_dataset(pa.table({"a": ["x" * 100] * 5000}), tmp_path / "t")
    before = lance.bytes_read_counter(), lance.iops_counter()
    made.to_table()
    assert lance.bytes_read_counter() > before[0]
    assert lance.iops_counter() > before[1]


def test_the_stable_version_is_that_of_new_tables(tmp_path: Path) -> None:
    made = lance.write_dataset(pa.table({"a": [1]}), tmp_path / "t")
    assert made.data_storage_version == file.stable_version()


def test_files_have_the_version_of_new_tables(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2]})
    made = lance.write_dataset(table, tmp_path / "t")
    with file.LanceFileWriter(tmp_path / "t" / "data" / "one.lance") as writer:
        writer.write_batch(table)
    fragment = lance.LanceFragment.create_from_file("one.lance", made, 0)
    append = lance.LanceOperation.Append([fragment])
    assert lance.LanceDataset.commit(made, append, read_version=1).count_rows() == 4


def test_files_have_the_version_that_is_asked_for(tmp_path: Path) -> None:
    with file.LanceFileWriter(tmp_path / "f.lance", version="2.0") as writer:
        writer.write_batch(pa.table({"a": [1]}))
    metadata = file.LanceFileReader(str(tmp_path / "f.lance")).metadata()
    assert (metadata.major_version, metadata.minor_version) == (0, 3)


def test_stable_files_are_those_of_new_tables(tmp_path: Path) -> None:
    made = lance.write_dataset(pa.table({"a": [1]}), tmp_path / "t", data_storage_version="stable")
    assert made.data_storage_version == file.stable_version()


def test_the_writer_has_the_arguments_of_the_codec() -> None:
    names = signature(file.LanceFileWriter).parameters
    assert {"path", "schema", "version", "data_cache_bytes", "max_page_bytes"} <= set(names)
