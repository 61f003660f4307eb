"""Commits the batches of a stream as Spark lets them be committed, without Spark.

Each line of input is a JSON object: the table's `uri`, the `checkpoint`, a file with the number of
batches that are known to be done, `merges`, whether rows are merged by key, and the folder of
`strikes`. A process is forked for it; the answer is how that process ended.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.types import LongType, StructField, StructType

from lancelake.spark.streaming.sink import LanceStreamWriter
from tests.spark_faults.strikes import FOLDER
from tests.spark_faults.works import parts

SCHEMA = StructType([StructField("id", LongType()), StructField("n", LongType())])
QUERY = "the query"


def commit_rest(given: dict[str, Any]) -> None:
    """Do what is not known to be done."""
    checkpoint = Path(given["checkpoint"])
    options = {"path": given["uri"], "txnAppId": QUERY}
    if given["merges"]:
        options["mergeKeys"] = "id"
    done = int(checkpoint.read_text()) if checkpoint.exists() else 0
    for number, rows in list(enumerate(parts(overlap=given["merges"])))[done:]:
        writer = LanceStreamWriter(SCHEMA, options, overwrite=False)
        batch = pa.record_batch({"id": list(rows), "n": list(rows.values())})
        writer.commit([writer.write(iter([batch]))], number)
        staged = checkpoint.with_suffix(".staged")
        staged.write_text(str(number + 1))
        staged.rename(checkpoint)


def forked(given: dict[str, Any]) -> int:
    """Run in a process of its own; return how it ended."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 1
    try:
        os.environ[FOLDER] = given["strikes"]
        commit_rest(given)
        code = 0
    finally:
        os._exit(code)


def main() -> None:
    """Answer until there is nothing left to do."""
    warnings.filterwarnings("ignore", message="lance is not fork-safe")
    for line in sys.stdin:
        print(json.dumps(forked(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
