"""Workloads of applications that are killed, and the rows they must leave.

Every work can be done again after its application died: it is what a user would start again.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import lancelake.pylance as lance
from tests.spark_faults.strikes import middle

FIRST = 40
ROWS = 120
FILES = 3
Rows = dict[int, int]


@dataclass(frozen=True, kw_only=True)
class Work:
    """One work: what is there before, what is done, which rows must be there after it.

    Tasks pass each point at least `passes` times.
    """

    prepare: Callable[[Path], None]
    run: Callable[[Any, Path], None]
    after: Rows
    begins_at: int
    commits: int = 1
    passes: int = 2


def table_of(place: Path) -> Path:
    """Return where the table lies that a work changes."""
    return place / "db" / "target.lance"


def _nothing(place: Path) -> None:
    place.joinpath("db").mkdir(parents=True)


def _target(place: Path) -> None:
    _nothing(place)
    _write(dict.fromkeys(range(FIRST), 0), table_of(place))


def _write(rows: Rows, place: Path, mode: str = "create") -> None:
    fields = [pa.field("id", pa.int64(), nullable=False), pa.field("n", pa.int64())]
    table = pa.table([list(rows), list(rows.values())], schema=pa.schema(fields))
    lance.write_dataset(table, str(place), mode=mode, enable_stable_row_ids=True)


def _files(place: Path, *, overlap: bool) -> None:
    """Lay out files of rows, in the order of their times."""
    _nothing(place)
    place.joinpath("in").mkdir()
    for number, rows in enumerate(parts(overlap=overlap)):
        path = place / "in" / f"{number}.json"
        lines = [json.dumps({"id": i, "n": n}) for i, n in rows.items()]
        path.write_text("\n".join(lines))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def _versions(place: Path) -> None:
    """Make a table of several versions."""
    _nothing(place)
    for number, rows in enumerate(parts(overlap=False)):
        _write(rows, place / "source.lance", "append" if number else "create")


def parts(*, overlap: bool) -> list[Rows]:
    """Return the rows of each batch of a stream; with overlap, batches share keys."""
    step = ROWS // 2 if overlap else ROWS
    return [dict.fromkeys(range(k * step, k * step + ROWS), k) for k in range(FILES)]


def doomed(frame: Any) -> Any:
    """Return the same rows, with a point in the middle of those of each partition."""
    return frame.mapInArrow(middle, frame.schema)


def _numbers(spark: Any) -> Any:
    """Return rows whose order within a partition depends on where they come from."""
    rows = spark.range(0, ROWS + FIRST // 2, 1, 4).selectExpr(f"id + {FIRST // 2} id", "1L n")
    return doomed(rows).repartition(3, "id")


def _append(spark: Any, place: Path) -> None:
    rows = doomed(spark.range(FIRST, FIRST + ROWS, 1, 3).selectExpr("id", "1L n"))
    options = {"txnAppId": "faults", "txnVersion": "1"}
    rows.write.format("lance").mode("append").options(**options).save(str(table_of(place)))


def _ctas(spark: Any, place: Path) -> None:
    from lancelake.spark import register

    if table_of(place).joinpath("_versions").exists() and _has_versions(place):
        return
    register(spark, root=str(place))
    rows = doomed(spark.range(0, ROWS, 1, 3).selectExpr("id", "1L n"))
    rows.createOrReplaceTempView("faults_rows")
    spark.sql("CREATE TABLE lance.db.target USING lance AS SELECT * FROM faults_rows")


def _has_versions(place: Path) -> bool:
    names = [path.name for path in table_of(place).joinpath("_versions").iterdir()]
    return any(name.endswith(".manifest") for name in names)


def _merge_sql(spark: Any, place: Path) -> None:
    from lancelake.spark import register

    if lance.dataset(str(table_of(place))).version > 1:
        return
    register(spark, root=str(place))
    _numbers(spark).createOrReplaceTempView("faults_rows")
    spark.sql(
        "MERGE INTO lance.db.target t USING faults_rows s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET n = t.n + s.n "
        "WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.n)"
    )


def _merge_table(spark: Any, place: Path) -> None:
    from lancelake.spark import LanceTable

    if lance.dataset(str(table_of(place))).version > 1:
        return
    table = LanceTable.forPath(spark, str(table_of(place))).alias("t")
    (
        table.merge(_numbers(spark).alias("s"), "t.id = s.id")
        .whenMatchedUpdate(set={"n": "t.n + s.n"})
        .whenNotMatchedInsertAll()
        .execute()
    )


def _from_files(spark: Any, place: Path) -> Any:
    options = {"maxFilesPerTrigger": "1"}
    stream = spark.readStream.schema("id long, n long").options(**options)
    return doomed(stream.json(str(place / "in")).repartition(2, "id"))


def _stream_files(spark: Any, place: Path) -> None:
    _run(_from_files(spark, place), place)


def _stream_table(spark: Any, place: Path) -> None:
    options = {"startingVersion": "1", "maxVersionsPerTrigger": "1"}
    stream = spark.readStream.format("lance").options(**options)
    _run(doomed(stream.load(str(place / "source.lance")).repartition(2, "id")), place)


def _stream_merge(spark: Any, place: Path) -> None:
    _run(_from_files(spark, place), place, mergeKeys="id")


def _run(stream: Any, place: Path, **options: str) -> None:
    query = (
        stream.writeStream.format("lance")
        .option("checkpointLocation", str(place / "checkpoint"))
        .options(**options)
        .trigger(availableNow=True)
        .start(str(table_of(place)))
    )
    query.awaitTermination()


_MERGED = dict.fromkeys(range(FIRST // 2), 0) | dict.fromkeys(range(FIRST // 2, ROWS + FIRST), 1)
_LAST = {i: k for part in parts(overlap=True) for i, k in part.items()}

_APART = {i: k for part in parts(overlap=False) for i, k in part.items()}

WORKS = {
    "append": Work(
        prepare=_target,
        run=_append,
        after=dict.fromkeys(range(FIRST), 0) | dict.fromkeys(range(FIRST, FIRST + ROWS), 1),
        begins_at=1,
    ),
    "create as select": Work(
        prepare=_nothing, run=_ctas, after=dict.fromkeys(range(ROWS), 1), begins_at=0
    ),
    "merge of sql": Work(prepare=_target, run=_merge_sql, after=_MERGED, begins_at=1),
    "merge of a table": Work(prepare=_target, run=_merge_table, after=_MERGED, begins_at=1),
    "stream of files": Work(
        prepare=functools.partial(_files, overlap=False),
        run=_stream_files,
        after=_APART,
        begins_at=0,
        commits=FILES,
        passes=2 * FILES - 1,
    ),
    "stream of a table": Work(
        prepare=_versions,
        run=_stream_table,
        after=_APART,
        begins_at=0,
        commits=FILES,
        passes=2 * FILES - 1,
    ),
    "stream merged by key": Work(
        prepare=functools.partial(_files, overlap=True),
        run=_stream_merge,
        after=_LAST,
        begins_at=0,
        # The table is made first, without rows.
        commits=FILES + 1,
        passes=2 * FILES - 1,
    ),
}

KINDS = (
    ("append", "create as select"),
    ("merge of sql", "merge of a table"),
    ("stream of files", "stream of a table", "stream merged by key"),
)
"""Writes, merges and streams: a round tries one of each."""


def of_round(number: int) -> list[str]:
    """Return a work of each kind, the next one in each round."""
    return [names[number % len(names)] for names in KINDS]
