"""Concatenated pages of several files hold the rows of all."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lance.file import LanceFileReader, LanceFileWriter

from lancelake.data import joined_fragments
from lancelake.data.codec.file_layout import Container, open_container
from lancelake.data.column_reader import LoadedSource
from lancelake.data.joined_fragments import page_copy
from lancelake.errors import CorruptTableError

SCHEMA = pa.schema({"number": pa.int64(), "word": pa.string()})
PARTS = st.lists(
    st.lists(st.tuples(st.sampled_from([0, 1, 1 << 40]), st.sampled_from(["", "x", "y"]))),
    min_size=1,
    max_size=6,
)


def part(folder: Path, rows: list[tuple[int, str]], number: int = 0) -> LoadedSource:
    path = folder / f"{number}.lance"
    table = pa.Table.from_pylist([{"number": n, "word": w} for n, w in rows], SCHEMA)
    with LanceFileWriter(str(path), SCHEMA, version="2.1") as writer:
        writer.write_batch(table)
    return LoadedSource(path.name, path.read_bytes())


def joined(folder: Path, sources: list[LoadedSource]) -> list[tuple[int, str]]:
    plan = page_copy(sources)
    assert plan is not None
    plan.write_local(folder / "joined.lance")
    rows = LanceFileReader(str(folder / "joined.lance")).read_all().to_table().to_pylist()
    return [(row["number"], row["word"]) for row in rows]


@given(parts=PARTS)
def test_the_rows_are_those_of_all_files(
    parts: list[list[tuple[int, str]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("files")
    sources = [part(folder, [*rows, (7, "last")], n) for n, rows in enumerate(parts)]
    expected = [row for rows in parts for row in (*rows, (7, "last"))]
    assert joined(folder, sources) == expected


def test_structs_above_lists_with_nulls_in_one_file_only_are_not_joined(tmp_path: Path) -> None:
    lists = pa.struct({"x": pa.list_(pa.int8())})
    sources = []
    for name, rows in {"some": [{"x": [1]}, None], "none": [{"x": [1]}, {"x": [2]}]}.items():
        batch = pa.record_batch({"a": pa.array(rows, lists)})
        with LanceFileWriter(str(tmp_path / name), batch.schema, version="2.1") as writer:
            writer.write_batch(batch)
        sources.append(LoadedSource(name, (tmp_path / name).read_bytes()))
    assert page_copy(sources) is None
    assert page_copy([sources[0], sources[0]]) is not None


def test_files_that_end_alike_are_decoded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def noted(source: LoadedSource) -> Container:
        opened.append(source.name)
        return open_container(source)

    monkeypatch.setattr(joined_fragments, "open_container", noted)
    rows = ([(1 << 40, "a")], [(1 << 41, "b")], [(1, "a longer word"), (2, "c")])
    sources = [part(tmp_path, part_rows, n) for n, part_rows in enumerate(rows)]
    assert joined(tmp_path, sources) == [row for part_rows in rows for row in part_rows]
    assert opened == ["0.lance", "2.lance"]


def test_files_of_other_columns_are_not_put_together(tmp_path: Path) -> None:
    other = pa.schema({"number": pa.int64(), "text": pa.string()})
    path = tmp_path / "other.lance"
    with LanceFileWriter(str(path), other, version="2.1") as writer:
        writer.write_batch(pa.table({"number": [1], "text": ["a"]}, schema=other))
    sources = [part(tmp_path, [(1, "a")]), LoadedSource("other", path.read_bytes())]
    assert page_copy(sources) is None


def test_bytes_behind_the_end_of_a_loaded_file_are_not_there() -> None:
    source = LoadedSource("f", b"abc")
    assert source.read(1, 2) == b"bc"
    with pytest.raises(CorruptTableError):
        source.read(1, 3)
