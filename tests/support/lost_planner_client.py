"""Client of a Spark Connect server whose planner is killed again and again.

Prints what it saw, as one JSON object: for each case, rows that were counted and errors.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.support.connected import connected
from tests.support.doomed_planner import AFTER_PUBLISH, BEFORE_PUBLISH, BEFORE_READ

PORT, ROOT = int(sys.argv[1]), Path(sys.argv[2])
TABLE = "lance.db.t"
COUNT = f"SELECT count(*) FROM {TABLE}"


def planner() -> dict[str, Any]:
    known: dict[str, Any] = json.loads((ROOT / "planner.json").read_text())
    return known


def kill() -> None:
    os.kill(planner()["pid"], signal.SIGKILL)


def doom(access: str) -> None:
    (ROOT / "doom").write_text(access)


def number(spark: SparkSession, query: str = COUNT) -> int:
    """Return the only number of a result."""
    return int(spark.sql(query).collect()[0][0])


def error(spark: SparkSession, statement: str) -> str:
    """Return how a statement fails."""
    try:
        spark.sql(statement).collect()
    except PySparkException as failure:
        return str(failure).partition("JVM stacktrace")[0]
    return "no error"


def other_session(_spark: SparkSession) -> object:
    kill()
    with connected(PORT) as other:
        return number(other)


def same_session(spark: SparkSession) -> object:
    kill()
    return number(spark)


def statement_of_ours(spark: SparkSession) -> object:
    kill()
    return len(spark.sql(f"OPTIMIZE {TABLE}").collect())


def row_command(spark: SparkSession) -> object:
    kill()
    spark.sql(f"DELETE FROM {TABLE} WHERE id = 99").collect()
    return number(spark)


def session_catalog(spark: SparkSession) -> object:
    spark.sql("CREATE TABLE plain USING lance AS SELECT id FROM range(7)").collect()
    kill()
    return number(spark, "SELECT count(*) FROM plain")


def kept_view(spark: SparkSession) -> object:
    spark.table(TABLE).createOrReplaceTempView("kept")
    spark.sql("CACHE TABLE kept").collect()
    kill()
    return number(spark)


def closed_gateway(spark: SparkSession) -> object:
    before = planner()
    kill()
    number(spark)
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", before["port"])) != 0


def while_planning(spark: SparkSession) -> object:
    doom(BEFORE_READ)
    return error(spark, COUNT), number(spark)


def in_a_job(spark: SparkSession) -> object:
    spark.udf.register("kill", lambda: [kill()] and 1, "bigint")
    failure = error(spark, f"INSERT INTO {TABLE} SELECT kill() + id, 'lost' FROM range(1)")
    return failure, number(spark)


def in_the_job_of_a_merge(spark: SparkSession) -> object:
    source = "(SELECT kill() + id AS id, 'lost' AS v FROM range(1))"
    merge = f"MERGE INTO {TABLE} t USING {source} s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    return error(spark, merge), number(spark)


def before_an_insert_is_published(spark: SparkSession) -> object:
    doom(BEFORE_PUBLISH)
    return error(spark, f"INSERT INTO {TABLE} VALUES (1000, 'lost')"), number(spark)


def after_an_insert_is_published(spark: SparkSession) -> object:
    doom(AFTER_PUBLISH)
    failure = error(spark, f"INSERT INTO {TABLE} VALUES (1001, 'kept')")
    count = number(spark)
    spark.sql(f"DELETE FROM {TABLE} WHERE id = 1001").collect()
    return failure, count


def before_a_delete_is_published(spark: SparkSession) -> object:
    doom(BEFORE_PUBLISH)
    return error(spark, f"DELETE FROM {TABLE} WHERE id < 50"), number(spark)


def reply(port: int, command: str) -> str:
    """Send a command to a gateway, and return the first line of its answer, empty if none."""
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(command.encode())
        with contextlib.suppress(ConnectionResetError):
            return client.makefile().readline().strip()
    return ""


def wrong_secret(spark: SparkSession) -> object:
    before = planner()
    secrets = {"right": before["secret"], "wrong": "wrong", "none": ""}
    replies = {name: reply(before["port"], f"A\n{secret}\ne\n") for name, secret in secrets.items()}
    replies["no login"] = reply(before["port"], "r\nu\njava.lang.System\nrj\ne\n")
    is_undisturbed = number(spark) > 0 and planner() == before
    return {name: text.startswith("!y") for name, text in replies.items()}, is_undisturbed


CASES: list[Callable[[SparkSession], object]] = [
    same_session,
    other_session,
    statement_of_ours,
    row_command,
    session_catalog,
    kept_view,
    closed_gateway,
    while_planning,
    in_a_job,
    in_the_job_of_a_merge,
    before_an_insert_is_published,
    after_an_insert_is_published,
    before_a_delete_is_published,
    wrong_secret,
]


def main() -> None:
    """Run each case in one session, and go on with the next whatever happens."""
    seen: dict[str, object] = {}
    with connected(PORT) as spark:
        create = f"CREATE TABLE {TABLE} AS SELECT id, concat('v', id) AS v FROM range(100)"
        spark.sql(create).collect()
        for case in CASES:
            try:
                seen[case.__name__] = case(spark)
            except Exception:  # noqa: BLE001  # the other cases go on
                seen[case.__name__] = traceback.format_exc()
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
