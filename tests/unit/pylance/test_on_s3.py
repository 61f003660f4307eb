"""Tables in an object store follow the same rules as tables on disk."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError, SchemaMismatchError
from lancelake.pylance.commit import CommitConflictError
from lancelake.table.merge import run
from lancelake.table.merge.run import plan_merge
from tests.golden.test_early_20_files import TABLE, VALUES
from tests.support.s3_server import S3Server, s3_server

ROWS = pa.table({"x": [0, 1, 2, 5], "s": ["a", "b", None, "c"], "f": [-0.0, 0.0, 5.0, None]})


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture
def bucket(s3: S3Server) -> str:
    return s3.new_bucket()


@pytest.fixture
def options(s3: S3Server) -> dict[str, str]:
    return s3.storage_options


@pytest.fixture
def table(bucket: str, options: dict[str, str]) -> lance.LanceDataset:
    return lance.write_dataset(ROWS, f"s3://{bucket}/t.lance", storage_options=options)


@pytest.mark.parametrize("name", VALUES)
def test_a_column_is_found_by_its_physical_index(
    s3: S3Server, bucket: str, options: dict[str, str], name: str
) -> None:
    s3.upload(TABLE, f"s3://{bucket}/t.lance")
    early = lance.dataset(f"s3://{bucket}/t.lance", 1, storage_options=options)
    assert early.to_table(columns=[name]).to_pydict() == {name: VALUES[name]}
    assert early.take([3], columns=[name]).to_pydict() == {name: VALUES[name][3:]}


def test_rows_without_columns_are_refused(
    s3: S3Server, bucket: str, options: dict[str, str]
) -> None:
    with pytest.raises(SchemaMismatchError, match="no columns"):
        lance.write_dataset(ROWS.select([]), f"s3://{bucket}/t.lance", storage_options=options)
    assert s3.keys(bucket) == []


def test_changes_hold_the_lock(table: lance.LanceDataset, options: dict[str, str]) -> None:
    seen: list[int] = []

    @contextmanager
    def lock(version: int) -> Iterator[None]:
        if version == 3:
            raise CommitConflictError
        seen.append(version)
        yield

    locked = lance.dataset(table.uri, storage_options=options, commit_lock=lock)
    locked.delete("x = 0")
    assert seen == [2]
    with pytest.raises(CommitConflictError):
        locked.delete("x = 1", retry_timeout=timedelta(0))
    assert lance.dataset(table.uri, storage_options=options).count_rows() == 3


def test_a_commit_needs_the_version_that_was_read(table: lance.LanceDataset) -> None:
    with pytest.raises(ValueError, match="read_version"):
        lance.LanceDataset.commit(table, lance.LanceOperation.Append([]))
    assert table.latest_version == 1


def test_nothing_is_left_of_a_dropped_table(
    s3: S3Server, bucket: str, table: lance.LanceDataset, options: dict[str, str]
) -> None:
    lance.LanceDataset.drop(table.uri, storage_options=options)
    assert s3.keys(bucket) == []


@pytest.mark.parametrize(
    ("option", "meant"), [("aws_regoin", "aws_region"), ("alow_http", "allow_http")]
)
def test_a_misspelt_storage_option_is_refused(
    table: lance.LanceDataset, options: dict[str, str], option: str, meant: str
) -> None:
    with pytest.raises(InvalidRequestError, match=meant):
        lance.dataset(table.uri, storage_options={**options, option: "x"})
    with pytest.raises(InvalidRequestError, match=meant):
        lance.write_dataset(
            ROWS, table.uri, mode="append", storage_options={**options, option: "x"}
        )


@pytest.mark.parametrize("filter", ["10 / x > 1", "x != 0 AND 10 / x > 1"])
def test_an_expression_does_not_see_deleted_rows(table: lance.LanceDataset, filter: str) -> None:
    table.delete("x = 0")
    assert table.to_table(filter=filter).num_rows == 3
    table.update({"s": "'z'"}, where=filter)
    table.delete(filter)
    assert table.count_rows() == 0


def test_a_pyarrow_expression_means_what_sql_means(table: lance.LanceDataset) -> None:
    assert table.count_rows("f IN (0.0, 6, 7, 8)") == 2
    assert table.count_rows(pc.field("f").isin([0.0, 6.0, 7.0, 8.0])) == 2
    table.delete(~pc.field("s").isin(["a"]))
    assert table.to_table()["s"].to_pylist() == ["a", None]


def test_a_merge_is_done_once_beside_an_append(
    table: lance.LanceDataset, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[int] = []

    def found(*args: Any, **named: Any) -> object:
        outcome = plan_merge(*args, **named)
        more = ROWS.slice(0, 1).set_column(0, "x", pa.array([100 + len(attempts)]))
        lance.write_dataset(more, table.uri, mode="append", storage_options=options)
        attempts.append(1)
        return outcome

    monkeypatch.setattr(run, "plan_merge", found)
    merge = table.merge_insert("x").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(ROWS.slice(2).set_column(0, "x", pa.array([5, 7])))
    assert len(attempts) == 1
    rows = lance.dataset(table.uri, storage_options=options).to_table()["x"].to_pylist()
    assert sorted(rows) == [0, 1, 2, 5, 7, 100]


_FORK = """
import json, os, sys, warnings
warnings.filterwarnings("ignore", message="lance is not fork-safe")
import lancelake.pylance as lance

def open_table():
    return lance.dataset(sys.argv[1], storage_options=json.loads(sys.argv[2]))

print(open_table().to_table().num_rows, flush=True)
child = os.fork()
if child == 0:
    try:
        print(open_table().to_table().num_rows, flush=True)
    except NotImplementedError as error:
        print("refused:", error, flush=True)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_child_whose_parent_has_read_gets_an_error(
    table: lance.LanceDataset, options: dict[str, str]
) -> None:
    command = [sys.executable, "-c", _FORK, table.uri, json.dumps(options)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    first, second, code = done.stdout.splitlines()
    assert (first, code) == ("4", "0")
    assert second.startswith("refused: a forked process cannot")
