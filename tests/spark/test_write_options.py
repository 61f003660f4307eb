"""Every option of a write makes the same table from Python, the command line and Spark."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import typer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from typer.testing import CliRunner

import lancelake
from lancelake.cli.group import app
from lancelake.format.operations import COMMIT_MESSAGE
from lancelake.spark import write
from lancelake.spark.values.options import WRITE_OPTIONS
from lancelake.table.operation_record import record_of

NUMBERS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", None]})
MORE = pa.table({"id": pa.array([3, 4, 5], pa.int64()), "name": ["c", "d", "e"]})
WIDER = MORE.append_column("score", pa.array([0.5, None, 1.5]))
OTHER = pa.table({"key": pa.array([7], pa.int32())})
NESTED = pa.table({"id": pa.array([1], pa.int64()), "at": [{"x": 1}]})
DEEPER = pa.table({"id": pa.array([2], pa.int64()), "at": [{"x": 2, "y": "new"}]})
LABELS = pa.table({"labels": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64()))})
NOT_UTF8 = pa.table({"name": pa.array([b"caf\xe9"]).cast(pa.string(), safe=False)})
TEXTS = pa.table({"name": ["plain"]})
LONG = pa.table({"text": [f"{i:07d}" * 20_000 for i in range(150)]})
DAYS = pa.table({"id": pa.array([1, 2, 3, 4], pa.int64()), "name": ["mo", "tu", "tu", "we"]})
TUESDAY = pa.table({"id": pa.array([9], pa.int64()), "name": ["tu"]})

Facts = dict[str, Any]


@dataclass(frozen=True)
class Not:
    """A face that does not have the option."""

    reason: str


NO_CLI_COLUMNS = Not("overwrites the columns too; to keep them, delete the rows and append")
IS_TUNING = Not("tunes the process that writes, which Spark and the command line choose")
NO_BASES = Not("base paths are declared from Python; writes to their tables go to the root")
NO_BLOBS = Not("blobs outside of the table are written from Python")
IS_CONFIG = Not("is config: `lancelake config`, or TBLPROPERTIES on Spark")


@dataclass(frozen=True, kw_only=True)
class Case:
    """A write on each face, and what is expected of the table."""

    data: pa.Table = field(default_factory=lambda: MORE)
    base: pa.Table | None = field(default_factory=lambda: NUMBERS)
    mode: str = "append"
    python: Mapping[str, Any] | Not
    cli: tuple[str, ...] | Not
    spark: Mapping[str, object] | Not
    expects: Mapping[str, Any]
    """Facts of the table afterwards."""

    times: int = 1
    branch: str | None = None


CASES = {
    "create": Case(
        base=None,
        mode="create",
        python={"enable_stable_row_ids": True},
        cli=("--stable-row-ids",),
        spark={"stableRowIds": True},
        expects={"rows": MORE.to_pylist(), "has_stable_row_ids": True, "commits": 1},
    ),
    "create without stable row ids": Case(
        base=None,
        mode="create",
        python={"enable_stable_row_ids": False},
        cli=(),
        spark={"stableRowIds": False},
        expects={"has_stable_row_ids": False},
    ),
    "append": Case(
        python={},
        cli=(),
        spark={},
        expects={"rows": NUMBERS.to_pylist() + MORE.to_pylist(), "commits": 1},
    ),
    "append some of the columns": Case(
        data=MORE.select(["id"]),
        python={},
        cli=(),
        spark={},
        expects={"schema": {"id": "int64", "name": "string"}},
    ),
    "append columns in another order": Case(
        data=MORE.select(["name", "id"]),
        python={},
        cli=(),
        spark={},
        expects={"rows": NUMBERS.to_pylist() + MORE.to_pylist()},
    ),
    "append numbers of another type": Case(
        data=MORE.set_column(0, "id", MORE["id"].cast(pa.int32())),
        python=Not("types must be those of the table, as in pylance"),
        cli=(),
        spark={},
        expects={"schema": {"id": "int64", "name": "string"}},
    ),
    "overwrite": Case(
        data=OTHER,
        mode="overwrite",
        python={},
        cli=(),
        spark={"overwriteSchema": True},
        expects={"rows": [{"key": 7}], "schema": {"key": "int32"}, "config": {"team": "x"}},
    ),
    "overwrite rows, not columns": Case(
        data=MORE.select(["id"]),
        mode="overwrite",
        python=Not("overwrites the columns too, as in pylance"),
        cli=NO_CLI_COLUMNS,
        spark={},
        expects={"schema": {"id": "int64", "name": "string"}},
    ),
    "new columns": Case(
        data=WIDER,
        python={"schema_mode": "merge"},
        cli=("--merge-schema",),
        spark={"mergeSchema": True},
        expects={
            "schema": {"id": "int64", "name": "string", "score": "double"},
            "commits": 2,
        },
    ),
    "new fields of structs": Case(
        base=NESTED,
        data=DEEPER,
        python={"schema_mode": "merge"},
        cli=("--merge-schema",),
        spark={"mergeSchema": True},
        expects={
            "rows": [
                {"id": 1, "at": {"x": 1, "y": None}},
                {"id": 2, "at": {"x": 2, "y": "new"}},
            ],
        },
    ),
    "rows per file": Case(
        python={"max_rows_per_file": 2},
        cli=("--max-rows-per-file", "2"),
        spark={"maxRowsPerFile": 2},
        expects={"rows_per_fragment": [3, 2, 1]},
    ),
    "bytes per file": Case(
        base=None,
        mode="create",
        data=LONG,
        python={"max_bytes_per_file": 1, "enable_stable_row_ids": True},
        cli=Not("files are bounded by their rows"),
        spark={"maxBytesPerFile": 1},
        expects={"has_one_fragment": False},
    ),
    "file version": Case(
        mode="overwrite",
        python={"data_storage_version": "2.2"},
        cli=("--data-storage-version", "2.2"),
        spark={"dataStorageVersion": "2.2", "overwriteSchema": True},
        expects={"file_version": "2.2"},
    ),
    "file version that columns need": Case(
        data=LABELS,
        mode="overwrite",
        python={},
        cli=(),
        spark={"overwriteSchema": True},
        expects={"file_version": "2.2"},
    ),
    "strings that are not UTF-8": Case(
        base=TEXTS,
        data=NOT_UTF8,
        python={"invalid_utf8": "replace"},
        cli=("--invalid-utf8", "replace"),
        spark={"invalidUtf8": "replace"},
        expects={"rows": [{"name": "plain"}, {"name": "caf\N{REPLACEMENT CHARACTER}"}]},
    ),
    "message": Case(
        python={"commit_message": "late rows"},
        cli=("--message", "late rows"),
        spark={"userMetadata": "late rows"},
        expects={"message": "late rows"},
    ),
    "rows of a condition": Case(
        base=DAYS,
        data=TUESDAY,
        mode="overwrite",
        python={"replace_where": "name = 'tu'"},
        cli=("--replace-where", "name = 'tu'"),
        spark={"replaceWhere": "name = 'tu'"},
        expects={
            "rows": [{"id": 1, "name": "mo"}, {"id": 4, "name": "we"}, {"id": 9, "name": "tu"}],
            "config": {"team": "x"},
        },
    ),
    "rows of a condition in a new table": Case(
        base=None,
        data=TUESDAY,
        mode="overwrite",
        python={"replace_where": "name = 'tu'", "enable_stable_row_ids": True},
        cli=("--replace-where", "name = 'tu'", "--stable-row-ids"),
        spark={"replaceWhere": "name = 'tu'"},
        expects={"rows": TUESDAY.to_pylist()},
    ),
    "once": Case(
        times=2,
        python={"txn_app_id": "nightly", "txn_version": 17},
        cli=("--txn-app-id", "nightly", "--txn-version", "17"),
        spark={"txnAppId": "nightly", "txnVersion": 17},
        expects={"rows": NUMBERS.to_pylist() + MORE.to_pylist(), "commits": 1},
    ),
    "rows of a condition once": Case(
        times=2,
        base=DAYS,
        data=TUESDAY,
        mode="overwrite",
        python={"replace_where": "id > 2", "txn_app_id": "a", "txn_version": 1},
        cli=("--replace-where", "id > 2", "--txn-app-id", "a", "--txn-version", "1"),
        spark={"replaceWhere": "id > 2", "txnAppId": "a", "txnVersion": 1},
        expects={"commits": 1},
    ),
    "branch": Case(
        branch="late",
        python={},
        cli=("--branch", "late"),
        spark={"branch": "late"},
        expects={"rows": NUMBERS.to_pylist() + MORE.to_pylist()},
    ),
    "table with stable row ids": Case(
        base=None,
        mode="append",
        times=2,
        python={"enable_stable_row_ids": True},
        cli=("--stable-row-ids",),
        spark={"stableRowIds": True},
        expects={"commits": 2, "has_stable_row_ids": True},
    ),
    "settings of a new table": Case(
        base=None,
        mode="create",
        python={"auto_cleanup_options": {"interval": 5}},
        cli=IS_CONFIG,
        spark=IS_CONFIG,
        expects={
            "config": {
                "lance.auto_cleanup.interval": "5",
                "lance.auto_cleanup.older_than": "14days",
            }
        },
    ),
    "properties": Case(
        python={"transaction_properties": {"job": "17"}},
        cli=Not("a commit has a message"),
        spark=Not("a commit has a message, in userMetadata"),
        expects={"properties": {"job": "17"}},
    ),
}

NOT_COMPARED: dict[str, str] = {
    # Python
    "commit_lock": IS_TUNING.reason,
    "progress": IS_TUNING.reason,
    "data_cache_bytes": IS_TUNING.reason,
    "max_page_bytes": IS_TUNING.reason,
    "max_rows_per_group": "an argument of older releases of pylance",
    "use_legacy_format": "an argument of older releases of pylance",
    "enable_v2_manifest_paths": "old names of manifests are written from Python only",
    "initial_bases": NO_BASES.reason,
    "target_bases": NO_BASES.reason,
    "target_all_bases": NO_BASES.reason,
    "base_store_params": NO_BASES.reason,
    "external_blob_mode": NO_BLOBS.reason,
    "allow_external_blob_outside_bases": NO_BLOBS.reason,
    "blob_pack_file_size_threshold": NO_BLOBS.reason,
    "namespace_client": "finds the table",
    "table_id": "finds the table",
    "session": "finds the table",
    "storage_options": "finds the table",
    "confine_to": "finds the table",
    # Command line
    "--format": "describes the source",
    "--delimiter": "describes the source",
    "--partitions": "describes the source",
    "--storage-option": "finds the table",
    "--output": "chooses how the result is printed",
}


def _facts(uri: Path, branch: str | None, base_versions: int) -> Facts:
    table = lancelake.dataset(uri, version=None if branch is None else (branch, None))
    manifest = table._snapshot.manifest
    record = record_of(table._snapshot.transaction)
    rows = table.to_table().to_pylist()
    limits = [fragment.physical_rows for fragment in manifest.fragments]
    return {
        "rows": _sorted(rows),
        "schema": {field.name: str(field.type) for field in table.schema},
        "nullable": [field.nullable for field in table.schema],
        "config": dict(manifest.config),
        "file_version": manifest.data_version.value,
        "rows_per_fragment": limits,
        "has_one_fragment": len(limits) == 1,
        "has_stable_row_ids": manifest.has_stable_row_ids,
        "commits": len(table.versions()) - base_versions,
        "operation": record.name,
        "message": record.properties.get(COMMIT_MESSAGE),
        "properties": {k: v for k, v in record.properties.items() if "." not in k},
    }


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: repr(sorted(row.items())))


def _from_python(case: Case, uri: Path, options: Mapping[str, Any]) -> None:
    target: Any = uri
    if case.branch is not None:
        target = lancelake.dataset(uri, version=(case.branch, None))
    lancelake.write_dataset(case.data, target, mode=case.mode, **options)  # type: ignore[arg-type]


def _from_command_line(case: Case, uri: Path, options: tuple[str, ...]) -> None:
    source = uri.parent / "rows.arrow"
    with pa.ipc.new_file(source, case.data.schema) as file:
        file.write_table(case.data)
    result = CliRunner().invoke(
        app, ["write", str(source), str(uri), "--mode", case.mode, *options]
    )
    assert result.exit_code == 0, result.output


def _from_spark(case: Case, uri: Path, options: Mapping[str, object], spark: SparkSession) -> None:
    mode = "error" if case.mode == "create" else case.mode
    write(_frame(case.data, spark), str(uri), mode, **options)


def _frame(data: pa.Table, spark: SparkSession) -> DataFrame:
    """Return rows in one partition; strings travel as bytes, which need not be UTF-8."""
    if data is not NOT_UTF8:
        return spark.createDataFrame(data).coalesce(1)
    plain = spark.createDataFrame([(bytearray(b"caf\xe9"),)], "name binary").coalesce(1)
    return plain.select(f.col("name").cast("string"))


def _made(
    case: Case, folder: Path, write_rows: Callable[[Case, Path, Any], None], options: Any
) -> Facts:
    uri = folder / "t.lance"
    folder.mkdir()
    base_versions = 0
    if case.base is not None:
        base = lancelake.write_dataset(case.base, uri)
        base.update_config({"team": "x"})
        base_versions = base.version
        if case.branch is not None:
            base.create_branch(case.branch)
    for _ in range(case.times):
        write_rows(case, uri, options)
    facts = _facts(uri, case.branch, base_versions)
    shutil.rmtree(uri)
    return facts


@pytest.mark.parametrize("name", CASES)
def test_faces_make_the_same_table(name: str, spark: SparkSession, tmp_path: Path) -> None:
    case = CASES[name]
    faces: dict[str, tuple[Any, Callable[[Case, Path, Any], None]]] = {
        "python": (case.python, _from_python),
        "cli": (case.cli, _from_command_line),
        "spark": (case.spark, lambda case, uri, options: _from_spark(case, uri, options, spark)),
    }
    made = {
        face: _made(case, tmp_path / face, write_rows, options)
        for face, (options, write_rows) in faces.items()
        if not isinstance(options, Not)
    }
    first = next(iter(made.values()))
    expects = dict(case.expects)
    if "rows" in expects:
        expects["rows"] = _sorted(expects["rows"])
    assert {key: first[key] for key in expects} == expects
    assert made == dict.fromkeys(made, first)


def test_every_option_of_python_is_compared() -> None:
    given = {key for c in CASES.values() if not isinstance(c.python, Not) for key in c.python}
    positional = {"data_obj", "uri", "schema", "mode", "kwargs"}
    names = set(inspect.signature(lancelake.write_dataset).parameters) - positional
    assert names == (given | set(NOT_COMPARED)) & names
    assert given <= names


def test_every_option_of_the_command_line_is_compared() -> None:
    given = {key for c in CASES.values() if not isinstance(c.cli, Not) for key in c.cli}
    command = typer.main.get_command(app).get_command(None, "write")  # type: ignore[attr-defined]
    names = {option.opts[0] for option in command.params if option.opts[0].startswith("--")}
    assert names - {"--mode", "--help"} <= given | set(NOT_COMPARED)


def test_every_option_of_spark_is_compared() -> None:
    given = {key for c in CASES.values() if not isinstance(c.spark, Not) for key in c.spark}
    assert set(WRITE_OPTIONS) == given
