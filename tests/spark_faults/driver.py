"""A Spark application that executes calls from its input, until it is killed.

Its argument is a JSON object: `master`, `conf` and the folder `root`. Each line of input is a call
of a function of this module, `{"call": name, ...arguments}`; the answer is a line with `done` or
with `failed`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from tests.spark_faults.strikes import DRIVER

SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.executor.memory": "512m",
    "spark.log.level": "OFF",
    "spark.ui.enabled": False,
    "spark.ui.showConsoleProgress": False,
    "spark.sql.shuffle.partitions": 3,
    "spark.sql.execution.arrow.maxRecordsPerBatch": 10,
    # A busy machine is no dead one, and a cluster whose executors die often goes on.
    "spark.network.timeout": "600s",
    "spark.executor.heartbeatInterval": "20s",
    "spark.deploy.maxExecutorRetries": -1,
}


class Driver:
    """What can be asked of the application."""

    def __init__(self, spark: Any) -> None:
        """Work with a session."""
        self._spark = spark

    def work(self, name: str, place: str) -> None:
        """Do one of the works."""
        from tests.spark_faults.works import WORKS

        WORKS[name].run(self._spark, Path(place))

    def index(self, uri: str, kind: str) -> None:
        """Build an index."""
        from tests.spark_faults.index_builds import build

        build(self._spark, uri, kind)

    def upsert(self, place: str) -> None:
        """Run the stream of upserts."""
        from tests.spark_faults.wal_stream import run

        run(self._spark, Path(place))

    def labour(self, uri: str, name: str, number: int) -> Any:
        """Do one of the jobs on a table."""
        from tests.spark_faults.labours import do

        return do(self._spark, uri, name, number)

    def storm(self, place: str, names: list[str]) -> dict[str, int]:
        """Run streams that do not end; return when each of them has committed a batch."""
        from tests.spark_faults.storm_streams import Storm

        return Storm(self._spark, Path(place)).run_a_batch(names)

    def calm(self, place: str, names: list[str]) -> None:
        """Run the same streams until they have read what there is."""
        from tests.spark_faults.storm_streams import Storm

        Storm(self._spark, Path(place)).run_to_end(names)

    def increment(self, uri: str, steps: list[list[int]], patience_s: float) -> int:
        """Add one to the rows of each step's keys, or insert them; return how often it failed."""
        from lancelake.errors import ConflictError, ContentionError

        until = time.monotonic() + patience_s
        refused = 0
        for keys in steps:
            rows = self._spark.createDataFrame([(key, 1) for key in keys], "id long, n long")
            while True:
                try:
                    self._merge(uri, rows)
                except (ConflictError, ContentionError):
                    refused += 1
                    if time.monotonic() > until:
                        raise
                else:
                    break
        return refused

    def _merge(self, uri: str, rows: Any) -> None:
        from lancelake.spark import LanceTable

        (
            LanceTable.forPath(self._spark, uri)
            .merge(rows, "target.id = source.id")
            .whenMatchedUpdate(set={"n": "target.n + source.n"})
            .whenNotMatchedInsertAll()
            .execute()
        )


def main() -> None:
    """Answer until there is nothing left to do."""
    given = json.loads(sys.argv[1])
    os.environ[DRIVER] = str(os.getpid())
    from lancelake.spark import session

    spark = session(given["master"], root=given["root"], **SETTINGS, **given["conf"])
    driver = Driver(spark)
    print(json.dumps({"done": "ready"}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer = {"done": getattr(driver, asked.pop("call"))(**asked)}
        except Exception as error:  # noqa: BLE001  # the test judges
            answer = {"failed": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
