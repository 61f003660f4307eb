"""`lancelake write`: files of every format become rows."""

from __future__ import annotations

import gzip
import io
import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv
from typer.testing import Result

import lancelake.pylance as lance
from lancelake.errors import IncompatibleConflictError
from lancelake.table.ingest import files
from tests.support.official import Official

Document = Callable[..., Any]
Output = Callable[..., str]
Run = Callable[..., Result]

ROWS = pa.table({"id": [1, 2, 3], "text": ["a", None, "c"], "score": [0.5, 1.5, 2.5]})
PLAIN = ROWS.set_column(1, "text", pa.array(["a", "b", "c"]))


def _arrow_file(path: Path, table: pa.Table) -> None:
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


def _arrow_stream(path: Path, table: pa.Table) -> None:
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


def _json_lines(path: Path, table: pa.Table) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))


def _zipped_csv(path: Path, table: pa.Table) -> None:
    plain = io.BytesIO()
    csv.write_csv(table, plain)
    path.write_bytes(gzip.compress(plain.getvalue()))


WRITERS: dict[str, Callable[[Path, pa.Table], None]] = {
    "t.parquet": lambda path, table: pq.write_table(table, path, row_group_size=2),
    "t.csv": lambda path, table: csv.write_csv(table, path),
    "t.csv.gz": _zipped_csv,
    "t.jsonl": _json_lines,
    "t.arrow": _arrow_file,
    "t.arrows": _arrow_stream,
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "rows.parquet"
    pq.write_table(ROWS, path)
    return path


def _rows(document: Document, uri: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = document("head", uri, "-n", "100")["rows"]
    return rows


@pytest.mark.parametrize("name", WRITERS)
def test_rows_of(name: str, document: Document, tmp_path: Path) -> None:
    WRITERS[name](tmp_path / name, PLAIN)
    body = document("write", tmp_path / name, tmp_path / "t.lance")
    assert (body["version"], body["branch"], body["rows"], body["files"]) == (1, None, 3, 1)
    assert _rows(document, tmp_path / "t.lance") == PLAIN.to_pylist()


def test_official_lance_reads_what_is_written(
    output: Output, official_14: Official, source: Path, tmp_path: Path
) -> None:
    output("write", source, tmp_path / "t.lance")
    assert official_14.read(tmp_path / "t.lance").to_pylist() == ROWS.to_pylist()


def test_output_shows_rows_files_bytes_version_and_time(
    output: Output, source: Path, tmp_path: Path
) -> None:
    lines = output("write", source, tmp_path / "t.lance", width=300).splitlines()
    assert [line.split()[0] for line in lines] == ["table", "version", "written", "took"]
    assert lines[2].split()[1:5] == ["3", "rows", "1", "file,"]
    assert lines[3].endswith(" ms")


def test_the_document_has_all_keys(document: Document, source: Path, tmp_path: Path) -> None:
    body = document("write", source, tmp_path / "t.lance")
    assert set(body) == {"uri", "branch", "version", "rows", "files", "bytes", "milliseconds"}


def test_a_pattern_is_read_in_the_order_of_names(document: Document, tmp_path: Path) -> None:
    for i in (2, 0, 1):
        pq.write_table(ROWS.slice(i, 1), tmp_path / f"part-{i}.parquet")
    assert document("write", tmp_path / "part-*.parquet", tmp_path / "t.lance")["rows"] == 3
    assert [r["id"] for r in _rows(document, tmp_path / "t.lance")] == [1, 2, 3]


def test_files_of_several_formats_go_together(
    document: Document, source: Path, tmp_path: Path
) -> None:
    (tmp_path / "more.jsonl").write_text('{"score": 9.0, "id": 4}\n')
    document("write", source, tmp_path / "more.jsonl", tmp_path / "t.lance")
    assert _rows(document, tmp_path / "t.lance")[3] == {"id": 4, "text": None, "score": 9.0}


def test_a_column_that_only_a_later_file_has_is_refused(
    run: Run, source: Path, tmp_path: Path
) -> None:
    pq.write_table(ROWS.append_column("new", [[1, 2, 3]]), tmp_path / "more.parquet")
    result = run("write", source, tmp_path / "more.parquet", tmp_path / "t.lance", width=300)
    assert result.exit_code == 2
    assert "--merge-schema" in result.stderr
    assert run("info", tmp_path / "t.lance").exit_code == 3


def test_merging_takes_the_columns_of_all_files(
    document: Document, source: Path, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"id": [4], "new": ["x"]}), tmp_path / "more.parquet")
    document("write", source, tmp_path / "more.parquet", tmp_path / "t.lance", "--merge-schema")
    last = _rows(document, tmp_path / "t.lance")[3]
    assert last == {"id": 4, "text": None, "score": None, "new": "x"}


def test_merging_adds_columns_to_the_table(
    document: Document, source: Path, tmp_path: Path
) -> None:
    document("write", source, tmp_path / "t.lance")
    pq.write_table(pa.table({"id": [4], "new": ["x"]}), tmp_path / "more.parquet")
    more = ("--mode", "append", "--merge-schema")
    assert document("write", tmp_path / "more.parquet", tmp_path / "t.lance", *more)["rows"] == 1
    assert [r["new"] for r in _rows(document, tmp_path / "t.lance")] == [None] * 3 + ["x"]


def test_append_and_overwrite(document: Document, source: Path, tmp_path: Path) -> None:
    document("write", source, tmp_path / "t.lance")
    assert document("write", source, tmp_path / "t.lance", "--mode", "append")["version"] == 2
    assert document("count", tmp_path / "t.lance")["rows"] == 6
    assert document("write", source, tmp_path / "t.lance", "--mode", "overwrite")["version"] == 3
    assert document("count", tmp_path / "t.lance")["rows"] == 3


def test_append_where_there_is_no_table_makes_one(
    document: Document, source: Path, tmp_path: Path
) -> None:
    assert document("write", source, tmp_path / "t.lance", "--mode", "append")["version"] == 1


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_appended_text_takes_the_types_of_the_table(
    name: str, document: Document, tmp_path: Path
) -> None:
    typed = pa.table({"id": pa.array([1], pa.int16()), "text": ["7"]})
    pq.write_table(typed, tmp_path / "first.parquet")
    document("write", tmp_path / "first.parquet", tmp_path / "t.lance")
    WRITERS[name](tmp_path / name, pa.table({"text": ["8"], "id": [2]}))
    document("write", tmp_path / name, tmp_path / "t.lance", "--mode", "append")
    assert _rows(document, tmp_path / "t.lance")[1] == {"id": 2, "text": "8"}


def test_vectors_in_json_lines_take_the_length_of_the_table(
    document: Document, tmp_path: Path
) -> None:
    vectors = pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2))
    pq.write_table(pa.table({"v": vectors}), tmp_path / "first.parquet")
    document("write", tmp_path / "first.parquet", tmp_path / "t.lance")
    (tmp_path / "more.jsonl").write_text('{"v": [3, 4.5]}\n')
    document("write", tmp_path / "more.jsonl", tmp_path / "t.lance", "--mode", "append")
    assert _rows(document, tmp_path / "t.lance")[1] == {"v": [3.0, 4.5]}


def test_appends_to_a_branch(document: Document, source: Path, tmp_path: Path) -> None:
    uri = tmp_path / "t.lance"
    document("write", source, uri)
    document("branch", "create", uri, "side")
    body = document("write", source, uri, "--mode", "append", "--branch", "side")
    assert (body["branch"], body["version"]) == ("side", 2)
    assert (document("count", uri)["rows"], document("count", uri, "--at", "side:")["rows"]) == (
        3,
        6,
    )


def test_options_of_the_table_are_kept(document: Document, source: Path, tmp_path: Path) -> None:
    options = ("--max-rows-per-file", "2", "--data-storage-version", "2.2", "--stable-row-ids")
    body = document("write", source, tmp_path / "t.lance", *options, "-m", "hello")
    assert body["files"] == 2
    info = document("info", tmp_path / "t.lance")
    assert (info["data_file_version"], info["stable_row_ids"]) == ("2.2", True)
    assert document("log", tmp_path / "t.lance")["versions"][0]["message"] == "hello"


@pytest.mark.parametrize(
    "wish",
    [
        ["append", "--data-storage-version", "2.2"],
        ["append", "--stable-row-ids"],
        ["overwrite", "--stable-row-ids"],
    ],
    ids=" ".join,
)
def test_what_the_table_decided_is_not_changed_in_silence(
    wish: list[str], run: Run, output: Output, source: Path, tmp_path: Path
) -> None:
    output("write", source, tmp_path / "t.lance")
    assert run("write", source, tmp_path / "t.lance", "--mode", *wish).exit_code == 2


def test_an_arrow_stream_comes_from_standard_input(tmp_path: Path) -> None:
    _arrow_stream(tmp_path / "rows", ROWS)
    command = [sys.executable, "-m", "lancelake", "write", "-", str(tmp_path / "t.lance")]
    with (tmp_path / "rows").open("rb") as stream:
        done = subprocess.run(command, stdin=stream, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"3 rows" in done.stdout


def test_a_bar_is_shown_at_a_terminal(source: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lancelake", "write", str(source), str(tmp_path / "t.lance")]
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, env=environment, check=True)
    os.close(theirs)
    with os.fdopen(ours, "rb", buffering=0) as screen:
        assert b"%" in screen.read(65536)


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["{tmp}/nothing.parquet", "{tmp}/t.lance"], 3),
        (["{tmp}/nothing-*.parquet", "{tmp}/t.lance"], 3),
        (["{tmp}", "{tmp}/t.lance"], 2),
        (["s3://bucket/*.parquet", "{tmp}/t.lance"], 2),
        (["{tmp}/rows.dat", "{tmp}/t.lance"], 2),
        (["{tmp}/rows.parquet", "-", "{tmp}/t.lance"], 2),
        (["{tmp}/rows.parquet", "{tmp}/t.lance", "--format", "arrow"], 2),
        (["{tmp}/rows.dat", "{tmp}/t.lance", "--format", "parquet"], 2),
        (["{tmp}/bad.csv", "{tmp}/t.lance"], 2),
        (["{tmp}/bad.jsonl", "{tmp}/t.lance"], 2),
        (["{tmp}/rows.parquet", "{tmp}/t.lance", "--data-storage-version", "9.9"], 5),
        (["{tmp}/rows.parquet", "{tmp}/t.lance", "--data-storage-version", "legacy"], 5),
        (["{tmp}/rows.parquet", "{tmp}/t.lance", "--max-rows-per-file", "0"], 2),
        (["{tmp}/rows.parquet", "{tmp}/t.lance", "--mode", "upsert"], 2),
        (["{tmp}/rows.parquet", "{tmp}/t.lance", "--branch", "side"], 3),
        (["{tmp}/rows.parquet"], 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_exit_code_of(args: list[str], code: int, run: Run, source: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.dat").write_bytes(b"anything")
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n1,2,3\n")
    (tmp_path / "bad.jsonl").write_text('{"a": 1}\n{"a": \n')
    result = run("write", *(a.format(tmp=tmp_path) for a in args))
    assert (result.exit_code, result.stdout) == (code, "")
    assert "Traceback" not in result.stderr


def test_a_table_that_is_there_exits_with_4(
    run: Run, output: Output, source: Path, tmp_path: Path
) -> None:
    output("write", source, tmp_path / "t.lance")
    assert run("write", source, tmp_path / "t.lance").exit_code == 4


def test_columns_of_another_type_are_refused(
    run: Run, output: Output, source: Path, tmp_path: Path
) -> None:
    output("write", source, tmp_path / "t.lance")
    pq.write_table(pa.table({"id": ["x"]}), tmp_path / "other.parquet")
    result = run("write", tmp_path / "other.parquet", tmp_path / "t.lance", "--mode", "append")
    assert result.exit_code == 2


def test_an_overwrite_changes_the_format_of_data_files(
    document: Document, source: Path, tmp_path: Path
) -> None:
    document("write", source, tmp_path / "t.lance")
    anew = ("--mode", "overwrite", "--data-storage-version", "2.2")
    document("write", source, tmp_path / "t.lance", *anew)
    assert document("info", tmp_path / "t.lance")["data_file_version"] == "2.2"


def test_text_that_changes_its_type_is_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_BLOCK_BYTES", 64)
    lines = ["a", *("1" for _ in range(1000)), "oops"]
    (tmp_path / "late.csv").write_text("\n".join(lines))
    result = run("write", tmp_path / "late.csv", tmp_path / "t.lance", width=300)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "late.csv" in result.stderr
    assert run("info", tmp_path / "t.lance").exit_code == 3


def test_a_conflict_exits_with_8(
    run: Run, output: Output, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output("write", source, tmp_path / "t.lance")

    def refuse(*_: object) -> None:
        raise IncompatibleConflictError.between(
            mine="Append", theirs="Restore", version=2, reason=""
        )

    monkeypatch.setattr("lancelake.table.write.commit", refuse)
    assert run("write", source, tmp_path / "t.lance", "--mode", "append").exit_code == 8


@pytest.mark.parametrize("name", ["t.jsonl", "t.arrow"])
def test_rows_without_columns_are_refused(name: str, run: Run, tmp_path: Path) -> None:
    WRITERS[name](tmp_path / name, ROWS.select([]))
    result = run("write", tmp_path / name, tmp_path / "t.lance")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "no columns" in result.stderr


def _invalid_text(path: Path) -> None:
    binary = pa.array([b"ok", b"\xff"])
    text = pa.Array.from_buffers(pa.string(), 2, binary.buffers())
    pq.write_table(pa.table({"s": text}), path)


def test_text_that_is_not_utf8_is_refused(run: Run, tmp_path: Path) -> None:
    _invalid_text(tmp_path / "t.parquet")
    result = run("write", tmp_path / "t.parquet", tmp_path / "t.lance")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "not UTF-8" in result.stderr


def test_text_that_is_not_utf8_is_replaced(run: Run, document: Document, tmp_path: Path) -> None:
    _invalid_text(tmp_path / "t.parquet")
    choice = ("--invalid-utf8", "replace")
    assert run("write", tmp_path / "t.parquet", tmp_path / "t.lance", *choice).exit_code == 0
    assert document("head", tmp_path / "t.lance")["rows"] == [{"s": "ok"}, {"s": "\ufffd"}]


@pytest.mark.parametrize(
    ("name", "data"),
    [("t.csv", b"a,b\n1,\xff\n2,ok\n"), ("t.tsv", b"a\tb\n1\t\xff\n2\tok\n")],
)
def test_invalid_text_of_a_text_file_is_no_binary_column(
    name: str, data: bytes, run: Run, document: Document, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(data)
    refused = run("write", tmp_path / name, tmp_path / "t.lance")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "column b has a string that is not UTF-8" in refused.stderr
    choice = ("--invalid-utf8", "replace")
    assert run("write", tmp_path / name, tmp_path / "t.lance", *choice).exit_code == 0
    assert [row["b"] for row in document("head", tmp_path / "t.lance")["rows"]] == ["\ufffd", "ok"]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("t.csv", b"a,b\xff\n1,2\n"),
        ("t.jsonl", b'{"b\xff": 1}\n'),
        ("t.jsonl", b'{"s": {"b\xff": 1}}\n'),
    ],
)
def test_names_that_are_not_utf8_are_refused(
    name: str, data: bytes, run: Run, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(data)
    result = run("write", tmp_path / name, tmp_path / "t.lance")
    assert (result.exit_code, result.stdout) == (2, "")
    stated = " ".join(result.stderr.split())
    assert f"{name}' has a column whose name is not UTF-8" in stated


def _hive(root: Path, **folders: pa.Table) -> str:
    for folder, table in folders.items():
        path = root / folder.replace("_", "=")
        path.mkdir(parents=True)
        pq.write_table(table, path / "part.parquet")
    return str(root / "*" / "*.parquet")


def _read(uri: Path) -> list[dict[str, Any]]:
    return lance.dataset(uri).to_table().to_pylist()


def test_folders_with_a_value_become_a_column(document: Document, tmp_path: Path) -> None:
    rows = pa.table({"id": [1]})
    pattern = _hive(tmp_path / "in", day_1=rows, day_12=rows)
    assert document("write", pattern, tmp_path / "t.lance")["rows"] == 2
    assert _read(tmp_path / "t.lance") == [{"id": 1, "day": 1}, {"id": 1, "day": 12}]


@pytest.mark.parametrize(
    ("folders", "values"),
    [
        (["day=01", "day=2"], ["01", "2"]),
        (["day=a%20b", "day=__HIVE_DEFAULT_PARTITION__"], [None, "a b"]),
        (["day=2", "day=__HIVE_DEFAULT_PARTITION__"], [2, None]),
    ],
)
def test_values_of_folders_are_numbers_only_where_nothing_is_lost(
    document: Document, tmp_path: Path, folders: list[str], values: list[object]
) -> None:
    for folder in folders:
        (tmp_path / folder).mkdir()
        pq.write_table(pa.table({"id": [1]}), tmp_path / folder / "part.parquet")
    document("write", f"{tmp_path}/*/*.parquet", tmp_path / "t.lance")
    assert [row["day"] for row in _read(tmp_path / "t.lance")] == values


def test_a_column_of_the_file_goes_before_its_folder(document: Document, tmp_path: Path) -> None:
    pattern = _hive(tmp_path / "in", day_1=pa.table({"day": [7]}))
    document("write", pattern, tmp_path / "t.lance")
    assert _read(tmp_path / "t.lance") == [{"day": 7}]


def test_folders_can_be_left_out(document: Document, tmp_path: Path) -> None:
    pattern = _hive(tmp_path / "in", day_1=pa.table({"id": [1]}))
    document("write", pattern, tmp_path / "t.lance", "--no-partitions")
    assert _read(tmp_path / "t.lance") == [{"id": 1}]


def test_merge_reads_folders_too(document: Document, tmp_path: Path) -> None:
    pattern = _hive(tmp_path / "in", day_1=pa.table({"id": [1]}))
    document("write", pattern, tmp_path / "t.lance")
    body = document("merge", tmp_path / "t.lance", pattern, "--on", "id,day")
    assert (body["inserted"], body["updated"]) == (0, 1)


@pytest.mark.parametrize(("delimiter", "named"), [(";", ";"), ("\t", "\\t"), ("|", "|")])
def test_text_without_commas_is_refused_until_its_delimiter_is_named(
    run: Run, document: Document, tmp_path: Path, delimiter: str, named: str
) -> None:
    source, uri = tmp_path / "s.csv", tmp_path / "t.lance"
    for rest in ("x", "x,y"):
        source.write_text(f"a{delimiter}b\n1{delimiter}{rest}\n")
        refused = run("write", source, uri)
        assert refused.exit_code == 2
        assert "--delimiter" in refused.stderr
    document("write", source, uri, "--delimiter", named)
    assert _read(uri) == [{"a": 1, "b": "x,y"}]


def test_a_merge_refuses_text_that_is_not_utf8(
    run: Run, document: Document, tmp_path: Path
) -> None:
    table = tmp_path / "t.lance"
    pq.write_table(pa.table({"s": ["ok"]}), tmp_path / "valid.parquet")
    _invalid_text(tmp_path / "t.parquet")
    document("write", tmp_path / "valid.parquet", table)
    result = run("merge", table, tmp_path / "t.parquet", "--on", "s")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "not UTF-8" in result.stderr
    assert document("info", table)["version"] == 1


def test_an_update_refuses_text_that_is_not_utf8(
    run: Run, document: Document, tmp_path: Path
) -> None:
    table = tmp_path / "t.lance"
    pq.write_table(pa.table({"s": ["ok"]}), tmp_path / "valid.parquet")
    document("write", tmp_path / "valid.parquet", table)
    result = run("update", table, "--set", "s=CAST(X'FF00' AS STRING)")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "non UTF-8" in result.stderr
    assert document("info", table)["version"] == 1
