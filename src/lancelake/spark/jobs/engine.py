"""Jobs of Spark: the engine that runs tasks on executors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lancelake.core.values.tasks import Job, JobProgress, port
from lancelake.core.values.writes import Retries
from lancelake.errors import LanceTableError
from lancelake.spark.jvm.gateway import is_classic
from lancelake.spark.jvm.python_tasks import messages_of
from lancelake.spark.tasks.on_executors import ensure_workers, message_batch, portable

_RESULT = "number long, failed boolean, result binary"
_RESULT_ARROW = pa.schema([("number", pa.int64()), ("failed", pa.bool_()), ("result", pa.binary())])
_DESCRIPTION = "spark.job.description"


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """Runs pickled tasks on executors; their results are returned to the driver.

    Our own errors are raised on the driver as the task raised them; any other failure is handled by
    Spark, which retries the task.
    """

    spark: SparkSession

    @property
    def parallelism(self) -> int:
        """Number of tasks that run in parallel."""
        if is_classic(self.spark):
            return max(1, self.spark.sparkContext.defaultParallelism)
        return max(1, int(self.spark.conf.get("spark.sql.shuffle.partitions", "1") or 1))

    def run(self, job: Job) -> Iterator[bytes]:
        """Yield the result of every task in task order."""
        if not job.tasks:
            return
        tasks = [port.dumps(task) for task in job.tasks]
        with describe_jobs(self.spark, job.description):
            results = self._on_executors(tasks)
        for number, failed, result in results:
            if failed:
                raise LanceTableError.from_json(result.decode())
            if job.progress is not None:
                job.progress(
                    JobProgress(description=job.description, done=number + 1, total=len(job.tasks))
                )
            yield port.unseal(result)

    def _on_executors(self, tasks: list[bytes]) -> list[tuple[int, bool, bytes]]:
        if is_classic(self.spark):
            ensure_workers(self.spark.sparkContext)
            numbered = self.spark.sparkContext.parallelize(list(enumerate(tasks)), len(tasks))
            outcome = portable(_outcome)
            return sorted(numbered.map(lambda item: outcome(*item)).collect())
        numbers = self.spark.range(0, len(tasks), 1, len(tasks))
        rows = numbers.mapInArrow(portable(_runner(tasks)), _RESULT).collect()
        return sorted((row.number, row.failed, bytes(row.result)) for row in rows)


@contextmanager
def describe_jobs(spark: SparkSession, description: str) -> Iterator[None]:
    """Show a description in Spark's UI while jobs run."""
    if not is_classic(spark):
        yield
        return
    context = spark.sparkContext
    before = context.getLocalProperty(_DESCRIPTION)
    context.setJobDescription(description)
    try:
        yield
    finally:
        # None clears it, which the declared type does not say.
        context.setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type]


def _outcome(number: int, task: bytes) -> tuple[int, bool, bytes]:
    try:
        return number, False, port.seal(port.loads(task).run())
    except LanceTableError as error:
        return number, True, error.to_json().encode()


class _runner:  # a function with state that can be pickled
    def __init__(self, tasks: list[bytes]) -> None:
        self._tasks = tasks

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                outcome = _outcome(number, self._tasks[number])
                arrays = [
                    pa.array([value], field.type)
                    for value, field in zip(outcome, _RESULT_ARROW, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=_RESULT_ARROW)


Found = TypeVar("Found")


def on_partitions(
    frame: DataFrame,
    work: Callable[[Iterator[pa.RecordBatch]], Found],
    *,
    description: str,
) -> list[Found]:
    """Run a picklable function on each partition's batches and return the results.

    A partition may be processed more than once; one result per partition is returned. Our own
    errors are raised as they were raised on the executor.
    """
    with describe_jobs(frame.sparkSession, description):
        messages = messages_of(frame, _Reporting(work))
    results: list[Found] = []
    for message in messages:
        failure, result = port.loads(message)
        if failure is not None:
            raise LanceTableError.from_json(failure)
        results.append(result)
    return results


@dataclass(frozen=True, slots=True)
class _Reporting(Generic[Found]):
    work: Callable[[Iterator[pa.RecordBatch]], Found]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        outcome: tuple[str | None, Found | None]
        try:
            outcome = (None, self.work(iter(batches)))
        except LanceTableError as error:
            outcome = (error.to_json(), None)
        yield message_batch(port.dumps(outcome))


# An attempt may take minutes: delays as long as attempts would be wasted.
PATIENCE = Retries(timeout_s=3600.0, longest_wait_s=5.0)
