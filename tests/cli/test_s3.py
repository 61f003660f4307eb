"""The command line on S3 tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import Result

import lancelake.pylance as lance
from lancelake.storage.location import Location
from tests.golden.test_early_20_files import TABLE
from tests.support.official import Official
from tests.support.raw_text import binaries, strings, with_text
from tests.support.s3_server import S3Server, s3_server


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture(scope="module")
def uri(s3: S3Server, official_14: Official) -> str:
    """Return a table on S3 with two versions, the second with deletions."""
    uri = f"s3://{s3.new_bucket()}/tables/t.lance"
    code = """
lance.write_dataset(table, uri, storage_options=options).delete("x < 3")
"""
    official_14.run(uri, code, table=pa.table({"x": range(10)}), options=s3.storage_options)
    return uri


@pytest.fixture
def place(s3: S3Server) -> str:
    """Return where there is no table yet."""
    return f"s3://{s3.new_bucket()}/t.lance"


@pytest.fixture
def options(s3: S3Server) -> list[str]:
    return [part for k, v in s3.storage_options.items() for part in ("-s", f"{k}={v}")]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["count"], "7\n"),
        (["count", "--at", "1"], "10\n"),
        (["head", "-n", "1"], "x\n3\n1 row; more rows available, use --rows\n"),
        (["check", "--all-versions", "--data"], "no problems found  2 versions checked\n"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_answers(
    command: list[str], expected: str, output: Callable[..., str], uri: str, options: list[str]
) -> None:
    name, *rest = command
    assert output(name, uri, *rest, *options) == expected


def test_columns_are_found_by_their_physical_index(
    document: Callable[..., Any], place: str, options: list[str], s3: S3Server
) -> None:
    s3.upload(TABLE, place)
    rows = document("head", place, "--at", "1", "-c", "n,t", *options)["rows"]
    assert [(row["n"], row["t"]) for row in rows] == [(10, "p"), (20, ""), (30, "r"), (40, "s")]


def test_a_misspelt_storage_option_is_refused(
    run: Callable[..., Result], uri: str, options: list[str]
) -> None:
    result = run("count", uri, *options, "-s", "aws_regoin=x")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Did you mean aws_region?" in result.stderr


def test_a_bucket_that_is_not_there_is_reported(
    run: Callable[..., Result], options: list[str]
) -> None:
    result = run("info", "s3://no-such-bucket-here/t.lance", *options)
    assert result.exit_code == 7
    assert "Create the bucket, or check its name." in result.stderr


def test_folders_with_a_value_become_a_column(
    document: Callable[..., Any], place: str, options: list[str], tmp_path: Path
) -> None:
    for day in (1, 2):
        (tmp_path / f"day={day}").mkdir()
        pq.write_table(pa.table({"id": [day]}), tmp_path / f"day={day}" / "part.parquet")
    document("write", f"{tmp_path}/*/*.parquet", place, *options)
    rows = document("sql", place, "SELECT * FROM dataset ORDER BY id", *options)["rows"]
    assert rows == [{"id": 1, "day": 1}, {"id": 2, "day": 2}]


def test_text_that_is_not_utf8_is_refused(
    run: Callable[..., Result], place: str, options: list[str], tmp_path: Path
) -> None:
    pq.write_table(pa.table({"s": strings(b"ok", b"\xff")}), tmp_path / "t.parquet")
    refused = run("write", tmp_path / "t.parquet", place, *options)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "not UTF-8" in refused.stderr
    assert run("count", place, *options).exit_code == 3


def test_text_that_is_not_utf8_is_replaced_by_a_repair(
    document: Callable[..., Any], place: str, options: list[str], s3: S3Server, tmp_path: Path
) -> None:
    lance.write_dataset(pa.table({"c": binaries(b"ok", b"\xff")}), tmp_path / "binary.lance")
    local = with_text(tmp_path / "binary.lance", tmp_path / "t.lance")
    store = Location.parse(place, s3.storage_options).store
    for path in local.rglob("*"):
        if path.is_file():
            store.put(path.relative_to(local).as_posix(), path.read_bytes())
    body = document("repair", place, "--replace-invalid-utf8", "--apply", *options)
    assert (len(body["steps"]), body["left"]) == (1, [])
    assert document("head", place, *options)["rows"] == [{"c": "ok"}, {"c": "\ufffd"}]


def test_a_deeply_nested_record_does_not_block_a_cleanup(
    document: Callable[..., Any], place: str, options: list[str], s3: S3Server
) -> None:
    for mode in ("create", "overwrite"):
        rows = pa.table({"a": [1]})
        lance.write_dataset(rows, place, mode=mode, storage_options=s3.storage_options)
    store = Location.parse(place, s3.storage_options).store
    store.put("_cleanup/x.json", b"[" * 200_000)
    body = document("cleanup", place, "--retain", "1", *options)
    assert body["versions_removed"] == [1]


def test_a_local_base_is_reached_only_when_it_is_allowed(
    run: Callable[..., Result], place: str, options: list[str], s3: S3Server, tmp_path: Path
) -> None:
    local = lance.write_dataset(pa.table({"a": [1, 2]}), str(tmp_path / "local.lance"))
    local.shallow_clone(place, 1, storage_options=s3.storage_options)
    refused = run("head", place, *options)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "another kind of store" in " ".join(refused.stderr.split())
    assert run("head", place, *options, "--confine-to", tmp_path).exit_code == 0


def test_an_endpoint_that_is_no_url_is_refused(run: Callable[..., Result], place: str) -> None:
    refused = run("head", place, "-s", "endpoint=nonsense", "-s", "region=r")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "storage option 'aws_endpoint' is not a URL" in " ".join(refused.stderr.split())
