"""The command line on S3 tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import Result

from tests.golden.test_early_20_files import TABLE
from tests.support.official import Official
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


def _options(s3: S3Server) -> list[str]:
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
    command: list[str], expected: str, output: Callable[..., str], uri: str, s3: S3Server
) -> None:
    name, *rest = command
    assert output(name, uri, *rest, *_options(s3)) == expected


def test_columns_are_found_by_their_physical_index(
    document: Callable[..., Any], s3: S3Server
) -> None:
    uri = f"s3://{s3.new_bucket()}/t.lance"
    s3.upload(TABLE, uri)
    rows = document("head", uri, "--at", "1", "-c", "n,t", *_options(s3))["rows"]
    assert [(row["n"], row["t"]) for row in rows] == [(10, "p"), (20, ""), (30, "r"), (40, "s")]


def test_a_misspelt_storage_option_is_refused(
    run: Callable[..., Result], uri: str, s3: S3Server
) -> None:
    result = run("count", uri, *_options(s3), "-s", "aws_regoin=x")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Did you mean aws_region?" in result.stderr


def test_a_bucket_that_is_not_there_is_reported(run: Callable[..., Result], s3: S3Server) -> None:
    result = run("info", "s3://no-such-bucket-here/t.lance", *_options(s3))
    assert result.exit_code == 7
    assert "Create the bucket, or check its name." in result.stderr
