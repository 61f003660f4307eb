"""Supported calls on Spark Connect; in a process of its own, since a process has one kind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys
from lancelake.spark import error_of, read, register, write
from tests.support.spark_connect import connect_session

spark = connect_session()
register(spark)
path = sys.argv[1]
frame = spark.createDataFrame([(i, f"s{i}") for i in range(10)], "id long, s string")
for _ in range(2):
    frame.write.format("lance").mode("append").save(path)
print("rows", read(spark, path).where("id > 5").count(), read(spark, path, version=1).count())
print("sum", spark.read.format("lance").load(path).selectExpr("sum(id)").first()[0])
feed = spark.read.format("lance").option("readChangeFeed", True).option("startingVersion", 2)
print("changes", feed.load(path).where("_change_type = 'insert'").count())
write(frame.selectExpr("ID % 2 + 20 AS ID", "s"), path, "overwrite", replaceWhere="id % 20 < 2")
print("replaced", read(spark, path).where("id >= 20").count(), read(spark, path).count())
refused = {
    "text": lambda: write(frame.selectExpr("s AS id"), path, "append"),
    "rows": lambda: write(frame, path, "overwrite", replaceWhere="id = 5"),
    "zone": lambda: spark.read.format("lance").option("timestamp", "2100-01-01").load(path).count(),
}
for name, act in refused.items():
    try:
        act()
    except Exception as failure:
        print("refused", name, error_of(failure))
for options in ({"vresion": 1}, {"version": 9}):
    try:
        read(spark, path, **options).count()
    except Exception as failure:
        print("error", error_of(failure))
spark.stop()
"""


def test_the_plain_source_reads_and_writes(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "t.lance")]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=900, cwd=ROOT
    )
    kinds = ("rows", "sum", "changes", "replaced", "refused", "error")
    said = [line for line in done.stdout.splitlines() if line.startswith(kinds)]
    assert said[:3] == ["rows 8 10", "sum 90", "changes 10"], done.stderr[-2000:]
    assert said[3] == "replaced 10 26"
    assert "does not accept values of type string" in said[4]
    assert "do not match the condition of the overwrite" in said[5]
    assert "has no time zone" in said[6]
    assert "Did you mean version?" in said[7]
    assert "version 9 was not found" in said[8]


BAD_INPUT = """
import json, sys
import pyarrow as pa
import lancelake
from lancelake.spark import LanceTable, error_of, register
from tests.support.spark_connect import connect_session

path = sys.argv[1]
schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())])
table = lancelake.write_dataset(pa.table({"id": [1, 2], "name": ["a", "b"]}, schema=schema), path)
table.tags.create("first", 1)
table.create_branch("trial", 1)
spark = connect_session()
register(spark)

def load(where=path, **options):
    return lambda: spark.read.format("lance").options(**options).load(where).collect()

def save(rows, columns, **options):
    frame = spark.createDataFrame(rows, columns)
    return lambda: frame.write.format("lance").mode("append").options(**options).save(path)

def merge():
    rows = spark.createDataFrame([(1, "x"), (1, "y")], "id long, name string")
    table = LanceTable.forPath(spark, path).alias("o")
    table.merge(rows.alias("l"), "o.id = l.id").whenMatchedUpdateAll().execute()

cases = {
    "path": load(path + "x"),
    "option": load(vresion=1),
    "value": load(batchRows="many"),
    "version": load(version=77),
    "tag": load(tag="frist"),
    "branch": load(branch="tiral"),
    "time": load(timestamp="soon"),
    "extra": save([(9, "z", 1)], "id long, name string, x int"),
    "missing": save([("z",)], "name string"),
    "null": save([(None, "z")], "id long, name string"),
    "write option": save([(9, "z")], "id long, name string", mergeShema="true"),
    "table": lambda: LanceTable.forPath(spark, path + "x"),
    "merge": merge,
}
for name, act in cases.items():
    try:
        act()
        print(json.dumps([name, None, "no error"]), flush=True)
    except Exception as failure:
        error = error_of(failure)
        print(json.dumps([name, type(error).__name__, str(error)]), flush=True)
spark.stop()
"""
SAID = {
    "path": ("TableNotFoundError", "not a Lance table"),
    "option": ("InvalidRequestError", "Did you mean version?"),
    "value": ("InvalidRequestError", "batchRows must be an integer"),
    "version": ("VersionNotFoundError", "version 77 was not found; the latest is 1"),
    "tag": ("RefNotFoundError", "Did you mean first?"),
    "branch": ("RefNotFoundError", "Did you mean trial?"),
    "time": ("InvalidRequestError", "'soon' is not a valid time"),
    "extra": ("SchemaMismatchError", "mergeSchema=true"),
    "missing": ("SchemaMismatchError", "column id of type int64 is missing"),
    "null": ("SchemaMismatchError", "column id contains null values"),
    "write option": ("InvalidRequestError", "Did you mean mergeSchema?"),
    "table": ("TableNotFoundError", "not a Lance table"),
    "merge": ("InvalidRequestError", "Ambiguous merge"),
}


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    """Return what is said to bad input: the kind of error, and the sentence."""
    path = tmp_path_factory.mktemp("connect") / "orders.lance"
    command = [sys.executable, "-c", BAD_INPUT, str(path)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=900, cwd=ROOT
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert lines, done.stderr[-2000:]
    return {name: (kind, sentence) for name, kind, sentence in lines}


@pytest.mark.parametrize("case", SAID)
def test_bad_input_is_answered_with_our_error(said: dict[str, tuple[str, str]], case: str) -> None:
    kind, part = SAID[case]
    found_kind, sentence = said[case]
    assert found_kind == kind
    assert part in sentence
    assert "orders.lance" in sentence


MERGES = """
import json, sys, warnings
import pyarrow as pa
import lancelake
from pyspark.sql import functions as f
from lancelake.spark import LanceTable, register
from lancelake.storage.location import Location
from lancelake.commit.snapshot import Latest, open_snapshot
from tests.support.spark_connect import connect_session

path = sys.argv[1]
columns = {"id": [1, 2], "name": ["a", "b"], "user": ["x", "y"], "score": [0.5, 1.5]}
lancelake.write_dataset(pa.table(columns), path)
spark = connect_session()
register(spark)
rows = spark.createDataFrame([(2, "new", 1), (3, "c", 2)], "id long, name string, extra int")

def merge(condition):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        table = LanceTable.forPath(spark, path).alias("t")
        (
            table.merge(rows.alias("s"), condition)
            .whenMatchedUpdate("user <> 'z'", {"t.name": "concat(s.name, t.user)"})
            .whenNotMatchedInsert(values={"id": "s.id", "name": "s.name"})
            .execute()
        )
    newest = open_snapshot(Location.parse(path), Latest())
    keys = newest.transaction.operation.inserted_rows
    ids = [] if keys is None else list(keys.field_ids)
    return ids, any("no key filter" in str(w.message) for w in said)

print(json.dumps(merge((f.col("t.id") == f.col("s.id")) & (f.col("s.extra") > 0))))
print(json.dumps(merge("t.id = s.id AND s.extra > 0")))
LanceTable.forPath(spark, path).update("score > 1", {"name": "upper(name)"})
LanceTable.forPath(spark, path).delete("id = 1")
LanceTable.forPath(spark, path).addColumns({"twice": f.col("id") * 2})
found = lancelake.dataset(path).to_table().to_pylist()
print(json.dumps(sorted(found, key=lambda row: row["id"])))
spark.stop()
"""


def test_tables_are_changed_by_names(tmp_path: Path) -> None:
    command = [sys.executable, "-c", MERGES, str(tmp_path / "t.lance")]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=900, cwd=ROOT
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert len(lines) == 3, done.stderr[-2000:]
    by_columns, by_text, rows = lines
    assert by_columns == [[0], False]
    assert by_text == [[], True]
    assert rows == [
        {"id": 2, "name": "NEWY", "user": "y", "score": 1.5, "twice": 4},
        {"id": 3, "name": "c", "user": None, "score": None, "twice": 6},
    ]


STREAM = """
import json, sys
import pyarrow as pa
import lancelake
from lancelake.spark import merge_batches, register
from tests.support.spark_connect import connect_session

source, target = sys.argv[1], sys.argv[2]
spark = connect_session()
register(spark)

def run(merge):
    stream = spark.readStream.format("lance").load(source)
    writer = stream.writeStream.foreachBatch(merge).trigger(availableNow=True)
    writer.option("checkpointLocation", target + ".checkpoint").start().awaitTermination()

for start in (0, 5):
    rows = pa.table({"id": range(start, start + 5)})
    lancelake.write_dataset(rows, source, mode="append")
    run(merge_batches(target, ["id"], txn_app_id="copy"))
print(json.dumps(sorted(lancelake.dataset(target).to_table()["id"].to_pylist())))
try:
    lancelake.write_dataset(rows, source, mode="append")
    run(merge_batches(target, ["id"]))
except Exception as failure:
    print(json.dumps(["txn_app_id" in str(failure)]))
spark.stop()
"""


def test_batches_of_a_stream_are_merged(tmp_path: Path) -> None:
    places = [str(tmp_path / "source.lance"), str(tmp_path / "target.lance")]
    done = subprocess.run(
        [sys.executable, "-c", STREAM, *places],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        cwd=ROOT,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert lines == [list(range(10)), [True]], done.stderr[-50_000:]
