"""Commits the batches of a stream as Spark lets them be committed, without Spark.

Its argument is a JSON object: the table's `uri`, the `checkpoint`, a file with the number of
batches that are known to be done, and `merges`, whether rows are merged by key.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa
from pyspark.sql.types import LongType, StructField, StructType

from lancelake.spark.streaming.sink import LanceStreamWriter
from tests.spark_faults.works import parts

SCHEMA = StructType([StructField("id", LongType()), StructField("n", LongType())])
QUERY = "the query"


def main() -> None:
    """Do what is not known to be done."""
    given = json.loads(sys.argv[1])
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


if __name__ == "__main__":
    main()
