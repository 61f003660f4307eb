"""Sources of `lancelake write`, `merge` and `convert`: folders, arrays, other tables."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError
from lancelake.storage.location import Location
from lancelake.table.ingest import files
from lancelake.table.ingest.files import ArrayLines
from tests.cli.conftest import Run
from tests.support.s3_server import s3_server

Document = Callable[..., Any]
ROWS = pa.table({"id": [1, 2], "s": ["a", "b"]})


def rows(uri: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = lance.dataset(uri).to_table().to_pylist()
    return sorted(found, key=lambda row: int(row["id"]))


def test_a_folder_is_read_with_its_partitions(run: Run, tmp_path: Path) -> None:
    for day in (1, 2):
        folder = tmp_path / "sales" / f"day={day}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": [day]}), folder / "part.parquet")
        (folder / "_SUCCESS").write_text("")
        (folder / ".part.parquet.crc").write_text("")
    (tmp_path / "sales" / "_temporary").mkdir()
    pq.write_table(pa.table({"id": [9]}), tmp_path / "sales" / "_temporary" / "x.parquet")
    for command in ("write", "convert"):
        target = tmp_path / f"{command}.lance"
        assert run(command, tmp_path / "sales", target).exit_code == 0
        assert rows(target) == [{"id": 1, "day": 1}, {"id": 2, "day": 2}]


@pytest.mark.parametrize("name", ["t.tsv", "t.json", "lines.json", "t.json.gz"])
def test_rows_of(name: str, run: Run, tmp_path: Path) -> None:
    texts = {
        "t.tsv": "id\ts\n1\ta\n2\tb\n",
        "t.json": json.dumps(ROWS.to_pylist(), indent=2),
        "lines.json": "".join(json.dumps(row) + "\n" for row in ROWS.to_pylist()),
    }
    if name == "t.json.gz":
        with pa.CompressedOutputStream(str(tmp_path / name), "gzip") as file:
            file.write(texts["t.json"].encode())
    else:
        (tmp_path / name).write_text(texts[name])
    assert run("write", tmp_path / name, tmp_path / "t.lance").exit_code == 0
    assert rows(tmp_path / "t.lance") == ROWS.to_pylist()


def test_objects_of_an_array_may_span_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_CHUNK", 7)
    items = [{"id": i, "s": "]" * i, "n": [1, {"x": "}"}]} for i in range(50)]
    text = "\ufeff \n" + json.dumps(items, indent=1)
    lines = ArrayLines(io.BytesIO(text.encode())).read().splitlines()
    assert [json.loads(line) for line in lines] == items


@pytest.mark.parametrize("text", ['[{"a": 1}', '[{"a": ]', "[1 2"])
def test_an_array_that_ends_early_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="JSON array is not valid"):
        ArrayLines(io.BytesIO(text.encode())).read()


def test_appended_parquet_is_cast_to_the_types_of_the_table(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "t.lance"
    vector = pa.list_(pa.float32(), 2)
    base = {"id": pa.array([1], pa.int64()), "v": pa.array([[1, 2]], vector)}
    lance.write_dataset(pa.table(base), target)
    new = {"id": pa.array([2], pa.int32()), "v": pa.array([[3.0, 4.0]], pa.list_(pa.float64()))}
    pq.write_table(pa.table(new), tmp_path / "x.parquet")
    assert run("write", tmp_path / "x.parquet", target, "--mode", "append").exit_code == 0
    assert rows(target)[1] == {"id": 2, "v": [3.0, 4.0]}


def test_a_value_that_does_not_fit_is_refused(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "t.lance"
    lance.write_dataset(pa.table({"id": pa.array([1], pa.int8())}), target)
    pq.write_table(pa.table({"id": [300]}), tmp_path / "x.parquet")
    result = run("write", tmp_path / "x.parquet", target, "--mode", "append")
    assert (result.exit_code, lance.dataset(target).count_rows()) == (2, 1)


def test_tables_as_sources_are_recognised(run: Run, sound: Path, tmp_path: Path) -> None:
    result = run("write", sound, tmp_path / "t.lance", width=300)
    assert result.exit_code == 2
    assert "lancelake clone" in result.stderr
    (tmp_path / "delta" / "_delta_log").mkdir(parents=True)
    result = run("write", tmp_path / "delta", tmp_path / "t.lance", width=300)
    assert result.exit_code == 2
    assert "lancelake convert" in result.stderr


def test_a_folder_without_files_is_reported(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert run("write", tmp_path / "empty", tmp_path / "t.lance").exit_code == 3


def test_objects_of_a_store_are_read(run: Run, tmp_path: Path) -> None:
    with s3_server() as server:
        settings = server.storage_options
        options = [part for k, v in settings.items() for part in ("-s", f"{k}={v}")]
        uri = f"s3://{server.new_bucket()}/in"
        store = Location.parse(uri, settings).store
        for day in (1, 2):
            data = pa.BufferOutputStream()
            pq.write_table(pa.table({"id": [day]}), data)
            store.put(f"day={day}/x.parquet", data.getvalue().to_pybytes())
        target = tmp_path / "t.lance"
        assert run("write", uri, target, *options).exit_code == 0
        assert rows(target) == [{"id": 1, "day": 1}, {"id": 2, "day": 2}]
        one = tmp_path / "one.lance"
        assert run("write", f"{uri}/day=2/x.parquet", one, *options).exit_code == 0
        assert rows(one) == [{"id": 2, "day": 2}]


@pytest.mark.parametrize(
    ("source", "advice"),
    [("dbfs:/rows.csv", "/dbfs/rows.csv"), ("s3:/b/rows.csv", "s3://b/rows.csv")],
)
def test_a_mistyped_uri_is_no_missing_file(
    source: str, advice: str, run: Run, tmp_path: Path
) -> None:
    result = run("write", source, tmp_path / "t")
    assert (result.exit_code, advice in result.stderr) == (2, True)


def test_a_table_is_not_written_to_a_folder_of_a_mistyped_name(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text("a\n1\n")
    assert run("write", "rows.csv", "dbfs:/mnt/t.lance").exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]
