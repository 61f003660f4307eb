"""The tasks of a plan run ahead on threads, their batches handed over in order."""

from __future__ import annotations

import atexit
import queue
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from lancelake.data.rebatch import rebatched
from lancelake.expr.planned import PlannedPredicate
from lancelake.expr.predicate import SqlPredicate
from lancelake.scan.count import live_rows
from lancelake.scan.execute import ScanColumns, execute
from lancelake.scan.execute import count as count_task
from lancelake.scan.order import ordered
from lancelake.scan.outputs import ExpressionOutput
from lancelake.scan.plan import ScanPlan, ScanTask
from lancelake.scan.request import DEFAULT_BATCH_ROWS

_QUEUE_BATCHES = 2
_POLL_S = 0.05
_EXIT_S = 5.0


def run(plan: ScanPlan) -> pa.RecordBatchReader:
    """Stream the rows of a plan."""
    if plan.order_by:
        batches = ordered(plan, _in_order(plan))
    else:
        batches = _sliced(_in_order(plan), plan.skip, plan.limit)
    if plan.strict_batch_size:
        batches = rebatched(batches, plan.spec.batch_rows or DEFAULT_BATCH_ROWS)
    return pa.RecordBatchReader.from_batches(plan.schema, batches)


def count(plan: ScanPlan) -> int:
    """Count the rows of a plan, reading no more than its predicate needs."""
    spec = plan.spec
    if spec.predicate is None and not spec.include_deleted_rows:
        places = spec.files, spec.manifest_at
        total = sum(live_rows(*places, task.fragment) for task in plan.tasks)
    else:
        with ThreadPoolExecutor(plan.fragment_readahead) as pool:
            columns = ScanColumns.of(spec)
            total = sum(pool.map(lambda task: count_task(task, columns), plan.tasks))
    left = max(0, total - plan.skip)
    return left if plan.limit is None else min(left, plan.limit)


def _in_order(plan: ScanPlan) -> Iterator[pa.RecordBatch]:
    tasks = plan.tasks
    columns = ScanColumns.of(plan.spec)
    if (len(tasks) <= 1 or plan.fragment_readahead <= 1) and not _evaluates(plan):
        for task in tasks:
            yield from execute(task, columns)
        return
    waiting = deque(tasks)
    running: deque[_Producer] = deque()
    try:
        while waiting or running:
            while waiting and len(running) < max(1, plan.fragment_readahead):
                running.append(_Producer(waiting.popleft(), columns))
            yield from running[0].batches()
            running.popleft()
    finally:
        for producer in running:
            producer.stop()


def _evaluates(plan: ScanPlan) -> bool:
    """Whether SQL is evaluated, which a thread of DataFusion that asks for rows must not do."""
    computed = any(isinstance(output, ExpressionOutput) for output in plan.spec.outputs)
    return computed or isinstance(plan.spec.predicate, SqlPredicate | PlannedPredicate)


class _Producer:
    """Runs one task on a thread of its own, never more than a few batches ahead."""

    def __init__(self, task: ScanTask, columns: ScanColumns) -> None:
        self._queue: queue.Queue[pa.RecordBatch | BaseException | None] = queue.Queue(
            _QUEUE_BATCHES
        )
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(task, columns), daemon=True)
        _producers.add(self)
        self._thread.start()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield what the task yields; raise what it raises."""
        while (item := self._queue.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item

    def stop(self) -> None:
        """Let the thread end soon, whether or not its task is done."""
        self._stopped.set()

    def join(self, timeout_s: float) -> None:
        """Wait until the thread has ended, but not forever."""
        self._thread.join(timeout_s)

    def _run(self, task: ScanTask, columns: ScanColumns) -> None:
        try:
            for batch in execute(task, columns):
                if not self._put(batch):
                    return
            self._put(None)
        except BaseException as error:  # noqa: BLE001  # handed over to the consumer
            self._put(error)

    def _put(self, item: pa.RecordBatch | BaseException | None) -> bool:
        while not self._stopped.is_set():
            try:
                self._queue.put(item, timeout=_POLL_S)
            except queue.Full:
                continue
            return True
        return False


_producers: weakref.WeakSet[_Producer] = weakref.WeakSet()


@atexit.register
def _end_threads() -> None:
    """End the threads of scans that were left early: within the codec they must not be cut off."""
    running = list(_producers)
    for producer in running:
        producer.stop()
    for producer in running:
        producer.join(_EXIT_S)


def _sliced(
    batches: Iterator[pa.RecordBatch], skip: int, limit: int | None
) -> Iterator[pa.RecordBatch]:
    """Drop the first rows, and all after `limit` more."""
    if limit == 0:
        return
    left = limit
    for batch in batches:
        if skip >= batch.num_rows:
            skip -= batch.num_rows
            continue
        kept = batch.slice(skip, left)
        skip = 0
        yield kept
        if left is not None:
            left -= kept.num_rows
            if left == 0:
                return
