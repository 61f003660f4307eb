"""Work on the partitions of a DataFrame, with what each found brought back to the driver."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame

from lancelake.errors import LanceTableError
from lancelake.spark.engine import described

Found = TypeVar("Found")

_RESULT = "failed boolean, result binary"
_RESULT_ARROW = pa.schema([("failed", pa.bool_()), ("result", pa.binary())])


def on_partitions(
    frame: DataFrame,
    work: Callable[[Iterator[pa.RecordBatch]], Found],
    *,
    description: str,
) -> list[Found]:
    """Run a picklable function on each partition's batches and return what the runs found.

    A run may happen more than once; one result per partition is returned. An error of ours is
    raised as the run raised it.
    """
    with described(frame.sparkSession, description):
        rows = frame.mapInArrow(_Reporting(work), _RESULT).collect()
    found: list[Found] = []
    for row in rows:
        if row.failed:
            raise LanceTableError.from_json(bytes(row.result).decode())
        found.append(pickle.loads(row.result))  # pickled by `_Reporting`
    return found


@dataclass(frozen=True, slots=True)
class _Reporting(Generic[Found]):
    work: Callable[[Iterator[pa.RecordBatch]], Found]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            result, failed = pickle.dumps(self.work(iter(batches))), False
        except LanceTableError as error:
            result, failed = error.to_json().encode(), True
        arrays = [pa.array([failed]), pa.array([result], pa.binary())]
        yield pa.RecordBatch.from_arrays(arrays, schema=_RESULT_ARROW)
