"""JSON output is complete, with stable keys and JSON-safe values."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.official import Official
from tests.support.table_surgery import edit_manifest, manifest_path

Document = Callable[..., Any]

FIELD = {
    "name", "id", "type", "nullable", "primary_key", "primary_key_position", "metadata", "fields",
}  # fmt: skip
INFO = {
    "uri", "version", "branch", "latest_version", "versions", "written_at", "writer", "rows",
    "deleted_rows", "data_bytes", "unsized_files", "fragments", "data_files", "deletion_files",
    "data_file_version", "stable_row_ids", "reader_flags", "writer_flags", "fields", "indices",
    "tags", "branches", "config", "table_metadata", "schema_metadata", "base_paths", "warnings",
}  # fmt: skip
INDEX = {
    "name", "kind", "columns", "segments", "is_system", "size_bytes", "indexed_rows",
    "unindexed_rows", "unindexed_fragments",
}  # fmt: skip
LOG = {
    "version", "damage", "tags", "written_at", "writer", "operation", "metrics", "user", "engine",
    "details", "message", "properties", "read_version", "rows", "fragments", "data_files",
    "data_bytes", "change",
}  # fmt: skip
CHANGE = {"rows_added", "rows_removed", "fragments_added", "fragments_removed"}
MANIFEST = {
    "file", "version", "branch", "timestamp", "writer_version", "tag", "data_version",
    "reader_feature_flags", "writer_feature_flags", "max_fragment_id", "transaction_file",
    "next_row_id", "config", "table_metadata", "base_paths", "schema_metadata", "fields",
    "indices", "fragments",
}  # fmt: skip
DATA_FILE = {"path", "size_bytes", "file_version", "fields", "column_indices", "base_id"}
FINDING = {
    "severity", "code", "message", "version", "branch", "path", "hint", "fragment", "column",
}  # fmt: skip


def test_info(document: Document, sound: Path) -> None:
    body = document("info", sound)
    assert set(body) == INFO
    assert set(body["fields"][0]) == FIELD
    assert set(body["indices"][0]) == INDEX
    assert body["tags"] == {"first": {"branch": None, "version": 1}}
    assert body["branches"] == {"side": {"parent_branch": None, "parent_version": 5}}


def test_info_has_warnings(document: Document, sound: Path) -> None:
    (warning,) = document("info", sound, "--at", "side:")["warnings"]
    assert set(warning) == {"code", "message", "advice", "command"}


def test_schema(document: Document, sound: Path) -> None:
    body = document("schema", sound)
    assert set(body) == {"version", "fields", "metadata", "primary_key"}
    assert [f["name"] for f in body["fields"][2]["fields"]] == ["a", "b"]


def test_log(document: Document, sound: Path) -> None:
    body = document("log", sound)
    assert set(body) == {"uri", "versions", "truncated"}
    assert [set(entry) for entry in body["versions"]] == [LOG] * 5
    assert set(body["versions"][0]["change"]) == CHANGE


def test_log_of_a_damaged_version(document: Document, table: Path) -> None:
    manifest_path(table, 3).write_bytes(b"")
    entry = document("log", table)["versions"][2]
    assert set(entry) == {"version", "damage", "tags"}


def test_show_manifest(document: Document, sound: Path) -> None:
    body = document("show", sound, "manifest")
    assert set(body) == MANIFEST
    assert body["fragments"][1]["row_ids"] == [
        {"kind": "Range", "rows": 10, "start": 10, "end": 20}
    ]
    assert body["indices"][0]["fragments"] == [0, 1, 2]


def test_show_transaction(document: Document, sound: Path) -> None:
    body = document("show", sound, "transaction", "--at", "3")
    assert set(body) == {"read_version", "uuid", "operation", "tag", "properties"}
    assert body["operation"]["name"] == "Delete"


def test_show_ref(document: Document, sound: Path) -> None:
    body = document("show", sound, "ref", "first")
    assert (body["kind"], body["name"], body["version"], body["branch"]) == (
        "tag",
        "first",
        1,
        None,
    )


def test_files(document: Document, sound: Path) -> None:
    body = document("files", sound)
    assert set(body) == {"uri", "version", "base_paths", "fragments", "totals"}
    fragment = body["fragments"][0]
    assert set(fragment) == {"id", "physical_rows", "rows", "data_files", "deletion_file"}
    assert set(fragment["data_files"][0]) == DATA_FILE
    assert set(fragment["deletion_file"]) == {"path", "deleted_rows", "base_id"}
    assert body["fragments"][1]["deletion_file"] is None
    assert body["totals"]["rows"] == 27


@pytest.mark.parametrize(("rows", "is_all"), [(1, False), (0, True)])
def test_the_first_rows_say_whether_they_are_all(
    document: Document, sound: Path, rows: int, is_all: bool
) -> None:
    body = document("head", sound, "-n", rows)
    assert (len(body["rows"]) > 1, body["truncated"]) == (is_all, not is_all)


def test_head(document: Document, sound: Path) -> None:
    body = document("head", sound, "-n", "1")
    assert set(body) == {"version", "columns", "rows", "truncated"}
    assert body["columns"][0] == {"name": "id", "type": "int64"}
    assert body["rows"] == [{"id": 0, "text": "row 0", "meta": {"a": 0, "b": "b"}}]


def test_take(document: Document, sound: Path) -> None:
    assert document("take", sound, "1", "--columns", "id")["rows"] == [{"id": 3}]


def test_count(document: Document, sound: Path) -> None:
    body = document("count", sound, "--filter", "id < 5")
    assert body == {"version": 5, "filter": "id < 5", "rows": 3}


def test_check_without_findings(document: Document, sound: Path) -> None:
    body = document("check", sound)
    assert body["findings"] == []
    assert body["summary"] == {
        "error": 0,
        "warning": 0,
        "info": 0,
        "versions_checked": 2,
        "values_checked": False,
    }


def test_check_with_findings(document: Document, table: Path) -> None:
    edit_manifest(table, lambda m: setattr(m, "writer_feature_flags", m.writer_feature_flags & ~8))
    (finding,) = document("check", table)["findings"]
    assert set(finding) == FINDING
    assert (finding["severity"], finding["code"]) == ("warning", "flag-missing")


def test_bytes_and_times_are_json_safe(
    document: Document, official_14: Official, tmp_path: Path
) -> None:
    columns = {
        "bytes": pa.array([b"\x00\xff"]),
        "time": pa.array([1_000_001], pa.timestamp("us", "UTC")),
        "nan": pa.array([float("nan")]),
    }
    official_14.write(tmp_path / "t.lance", pa.table(columns))
    (row,) = document("head", tmp_path / "t.lance")["rows"]
    assert row == {
        "bytes": base64.b64encode(b"\x00\xff").decode(),
        "time": "1970-01-01T00:00:01.000001Z",
        "nan": "NaN",
    }


@pytest.mark.parametrize(
    "command", ["check", "config list", "count", "files", "head", "info", "log", "schema"]
)
def test_an_empty_table_is_answered_for(
    command: str, document: Document, official_14: Official, tmp_path: Path
) -> None:
    official_14.write(tmp_path / "t.lance", pa.table({"x": pa.array([], pa.int64())}))
    assert document(*command.split(), tmp_path / "t.lance")
