"""A program of a client that has PySpark's client and nothing else: argument 1 is the port."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr, lit


def show(*values: object) -> None:
    print("|".join(map(str, values)))


def write_and_read(spark: SparkSession, root: Path) -> None:
    """Tables by name and by path, in SQL and as DataFrames."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lance.db").collect()
    spark.sql("CREATE TABLE lance.db.t (id BIGINT, v STRING)").collect()
    spark.sql("INSERT INTO lance.db.t SELECT id, concat('v', id) FROM range(100)").collect()
    frame = spark.range(100, 110).select("id", lit("frame").alias("v"))
    frame.writeTo("lance.db.t").append()
    spark.table("lance.db.t").where("id < 20").writeTo("lance.db.made").create()
    path = str(root / "by_path.lance")
    frame.write.format("lance").mode("overwrite").save(path)
    frame.write.format("lance").mode("append").save(path)
    by_path = spark.read.format("lance").load(path)
    show("rows", *(f.count() for f in (spark.table("lance.db.t"), spark.table("lance.db.made"))))
    show("by path", by_path.where("id >= 105").count())
    old = spark.read.format("lance").option("version", 1).load(path)
    show("old version", old.count(), spark.sql(f"SELECT * FROM lance.`{path}`").count())
    show("pushdown", plan_of(spark.table("lance.db.t").where("id < 5").select("id")))


def plan_of(frame: DataFrame) -> str:
    """Return the filters that a read has taken over."""
    plan = frame._explain_string(extended=True)
    return plan.split("filters [")[1].split("]")[0]


def change(spark: SparkSession) -> None:
    """Row commands, maintenance and procedures."""
    changes = spark.range(99, 120).select("id", lit("merged").alias("v")).alias("changes")
    changes.createOrReplaceTempView("changes")
    (
        changes.mergeInto("lance.db.t", expr("t.id = changes.id"))
        .whenMatched()
        .updateAll()
        .whenNotMatched()
        .insertAll()
        .merge()
    )
    show(
        "merged", *spark.sql("SELECT count(*), max(id) FROM lance.db.t WHERE v = 'merged'").first()
    )
    spark.sql(
        "MERGE INTO lance.db.t t USING changes c ON t.id = c.id"
        " WHEN MATCHED AND t.id > 110 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'again'"
    ).collect()
    spark.sql("UPDATE lance.db.t SET v = 'x' WHERE id = 1").collect()
    spark.sql("DELETE FROM lance.db.t WHERE id = 0").collect()
    show("changed", *spark.sql("SELECT count(*), count_if(v = 'again') FROM lance.db.t").first())
    spark.sql("OPTIMIZE lance.db.t").collect()
    spark.sql("VACUUM lance.db.t DRY RUN").collect()
    spark.sql("CALL lance.system.tag('db.t', 'first', 2)").collect()
    show("tagged", spark.sql("SELECT * FROM lance.db.t VERSION AS OF 'first'").count())


def stream(spark: SparkSession, root: Path) -> None:
    """Streams out of tables and into tables, by name and by path."""

    def run(name: str, start: Callable[..., object]) -> None:
        query = start(checkpointLocation=str(root / "checkpoints" / name))
        if not query.awaitTermination(900):
            raise SystemExit(f"the stream {name} did not end")

    def by_name(**options: str) -> object:
        made = spark.readStream.table("lance.db.made").selectExpr("id", "id * 2 AS twice")
        return made.writeStream.options(**options).trigger(availableNow=True).toTable("lance.db.s")

    def by_path(**options: str) -> object:
        rows = spark.readStream.format("lance").load(str(root / "by_path.lance"))
        sink = rows.writeStream.format("lance").options(**options).trigger(availableNow=True)
        return sink.start(str(root / "out.lance"))

    run("by name", by_name)
    spark.sql("INSERT INTO lance.db.made VALUES (500, 'late')").collect()
    run("by name", by_name)
    show("stream by name", *spark.sql("SELECT count(*), max(twice) FROM lance.db.s").first())
    run("by path", by_path)
    show("stream by path", spark.read.format("lance").load(str(root / "out.lance")).count())


def main() -> None:
    """Run everything; a session that is left open blocks the end of the process."""
    try:
        import lancelake  # noqa: F401
    except ImportError:
        show("the client has no package of ours")
    spark = SparkSession.builder.remote(f"sc://127.0.0.1:{sys.argv[1]}").create()
    root = Path.cwd()
    try:
        write_and_read(spark, root)
        change(spark)
        stream(spark, root)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
