"""Jobs on one table while executors are killed, and the model of its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import lancelake.pylance as lance

DIMENSION, NEAREST, ROWS = 4, 3, 400
_PRIME = 10_007
LABOURS = ("append", "merge", "index", "nearest", "compact")
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("n", pa.int64()),
        pa.field("v", pa.list_(pa.float32(), DIMENSION)),
    ]
)


def vector(number: int) -> list[float]:
    """Return the vector of a row."""
    return [number * (31 + place) % _PRIME / _PRIME for place in range(DIMENSION)]


def create(uri: str) -> None:
    """Create the table without rows."""
    lance.write_dataset(SCHEMA.empty_table(), uri, enable_stable_row_ids=True)


def do(spark: Any, uri: str, name: str, number: int) -> Any:
    """Do one labour for the numbered time."""
    return _LABOURS[name](spark, uri, number)


def append(spark: Any, uri: str, number: int) -> None:
    """Add rows."""
    first = ROWS * number
    rows = _rows(spark, first, first + ROWS)
    options = {"txnAppId": "labour", "txnVersion": str(number)}
    rows.write.format("lance").mode("append").options(**options).save(uri)


def merge(spark: Any, uri: str, number: int) -> None:
    """Add one to every third row."""
    _rows(spark, 0, ROWS * (number + 1)).where("id % 3 = 0").createOrReplaceTempView("late")
    spark.sql(
        f"MERGE INTO lance.`{uri}` t USING late s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET n = t.n + 1"
    )


def index(spark: Any, uri: str, number: int) -> None:
    """Build indices of ids and of vectors on executors, however small they are."""
    from lancelake.spark import LanceTable
    from lancelake.spark.jobs import index_build

    index_build.EMBEDDED_ROWS = 0
    table = LanceTable.forPath(spark, uri)
    table.createIndex("id", "BTREE", replace=True).collect()
    table.createIndex("v", "IVF_FLAT", replace=True, num_partitions=4).collect()


def nearest(spark: Any, uri: str, number: int) -> list[list[Any]]:
    """Search for the rows nearest to those of a part of the table, in groups of partitions."""
    from lancelake.spark import LanceTable

    first = ROWS * number
    queries = _rows(spark, first, first + 50).select("v").coalesce(1)
    found = LanceTable.forPath(spark, uri).search(queries, k=NEAREST, columns=["id"], nprobes=4)
    return [[row.query_index, row.id] for row in found.collect()]


def compact(spark: Any, uri: str, number: int) -> None:
    """Join small files."""
    from lancelake.spark import LanceTable

    LanceTable.forPath(spark, uri).optimize().executeCompaction()


_LABOURS = {
    "append": append,
    "merge": merge,
    "index": index,
    "nearest": nearest,
    "compact": compact,
}


def nearest_of_all(count: int, number: int) -> set[tuple[int, float]]:
    """Return the query and the distance of the rows that `nearest` must find."""
    every = vectors(range(count))
    first = ROWS * number
    found: set[tuple[int, float]] = set()
    for place, query in enumerate(every[first : first + 50]):
        distances = np.sort(((every - query) ** 2).sum(axis=1))[:NEAREST]
        found |= {(place, round(float(distance), 5)) for distance in distances}
    return found


def vectors(numbers: Any) -> npt.NDArray[np.float32]:
    """Return the vectors of rows."""
    return np.array([vector(number) for number in numbers], dtype=np.float32)


def _rows(spark: Any, first: int, stop: int) -> Any:
    values = [f"CAST(id * {31 + i} % {_PRIME} / {_PRIME} AS float)" for i in range(DIMENSION)]
    return spark.range(first, stop, 1, 4).selectExpr("id", "0L n", f"array({', '.join(values)}) v")
