"""Calls that a signal handler interrupts by raising: `python -m tests.fault.interrupts --help`."""

from __future__ import annotations

import argparse
import faulthandler
import json
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa

import lancelake
from lancelake.maintenance.check.finding import Severity
from lancelake.memwal.table_check import check_table
from lancelake.storage.location import Location

ROWS = 20_000
_BATCH = 1_000
_STUCK_S = 120.0
_CHANGED = 50
_WAREHOUSE = "base.lance"


class HandlerError(Exception):
    """What the handler raises, as the program's own class."""


class _DeadlineError(TimeoutError):
    """What the handlers of many schedulers raise: an operating system error for Python."""


RAISED: tuple[type[BaseException], ...] = (HandlerError, _DeadlineError, KeyboardInterrupt)
"""Classes that handlers raise in turn."""


@dataclass(kw_only=True)
class Stage:
    """A table of some fragments, and copies of it that calls may change."""

    folder: Path
    fragments: int
    number: int = 0
    base: Any = None
    copy: Path = field(default_factory=Path)

    @staticmethod
    def of(folder: Path, fragments: int) -> Stage:
        """Write the table."""
        stage = Stage(folder=folder, fragments=fragments)
        lancelake.write_dataset(
            _rows(0, ROWS), folder / _WAREHOUSE, max_rows_per_file=ROWS // fragments
        )
        stage.base = lancelake.dataset(folder / _WAREHOUSE)
        return stage

    def fresh(self) -> None:
        """Copy the table."""
        shutil.rmtree(self.copy, ignore_errors=True) if self.number else None
        self.number += 1
        self.copy = self.folder / f"copy{self.number}.lance"
        shutil.copytree(self.folder / _WAREHOUSE, self.copy)

    def changed(self) -> Any:
        """Open the copy."""
        return lancelake.dataset(self.copy)


def _rows(start: int, stop: int) -> pa.Table:
    keys = range(start, stop)
    return pa.table(
        {
            "key": pa.array(keys, pa.int64()),
            "value": pa.array([float(key) for key in keys]),
            "text": pa.array([f"word{key % 97} term{key % 13}" for key in keys]),
            "vector": pa.FixedSizeListArray.from_arrays(
                pa.array([float(key % 31 + i) for key in keys for i in range(8)], pa.float32()), 8
            ),
        }
    )


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call to interrupt, and what it must have done if it did not raise."""

    run: Callable[[Stage], object]
    expected: object
    changes: bool = False
    """Whether the call changes a copy of the table."""
    sums: tuple[float, ...] = ()
    """Sums of the column `value` that the table may have afterwards, besides that of before."""
    counts: tuple[int, ...] = (ROWS,)
    """Row counts that the table may have afterwards."""


def _take(stage: Stage) -> int:
    return int(stage.base.take(list(range(0, ROWS, 997))).num_rows)


def _merge(stage: Stage) -> object:
    source = _rows(ROWS - _CHANGED, ROWS + _CHANGED)
    builder = stage.changed().merge_insert("key")
    done = builder.when_matched_update_all().when_not_matched_insert_all().execute(source)
    return done["num_inserted_rows"], done["num_updated_rows"]


def _update(stage: Stage) -> object:
    return stage.changed().update({"value": "value + 1"}, where=f"key < {_CHANGED}")[
        "num_rows_updated"
    ]


def _delete(stage: Stage) -> object:
    return stage.changed().delete(f"key < {_CHANGED}")["num_deleted_rows"]


def _compact(stage: Stage) -> object:
    dataset = stage.changed()
    dataset.optimize.compact_files(target_rows_per_fragment=ROWS)
    return dataset.count_rows()


def _copied(stage: Stage, rows: Callable[[Any], Any]) -> int:
    lancelake.write_dataset(
        rows(stage.base), stage.copy, schema=stage.base.schema, mode="overwrite"
    )
    return int(lancelake.dataset(stage.copy).count_rows())


def _index(kind: str, column: str, **options: Any) -> Callable[[Stage], object]:
    def build(stage: Stage) -> object:
        dataset = stage.changed()
        if kind == "IVF_PQ":
            dataset.create_index(column, kind, **options)
        else:
            dataset.create_scalar_index(column, kind, **options)
        return len(dataset.describe_indices())

    return build


def _check(stage: Stage) -> int:
    place = Location.parse(stage.folder / _WAREHOUSE)
    return sum(finding.severity is Severity.ERROR for finding in check_table(place, data=True))


def _query(stage: Stage) -> object:
    query = stage.base.sql("SELECT count(*), sum(value) FROM dataset WHERE key >= 0").build()
    (batch,) = query.to_batch_records()
    return [column[0].as_py() for column in batch.columns]


_BEFORE = float(sum(range(ROWS)))
_MERGED = _BEFORE + float(sum(range(ROWS, ROWS + _CHANGED)))
_VECTORS = {"num_partitions": 4, "num_sub_vectors": 2, "num_bits": 4, "metric": "l2"}

CALLS: dict[str, Call] = {
    "to_table": Call(run=lambda s: s.base.to_table().num_rows, expected=ROWS),
    "to_table_filter": Call(
        run=lambda s: s.base.to_table(filter="value >= 100").num_rows, expected=ROWS - 100
    ),
    "to_batches": Call(
        run=lambda s: sum(b.num_rows for b in s.base.to_batches(batch_size=_BATCH)), expected=ROWS
    ),
    "to_reader": Call(
        run=lambda s: s.base.scanner(batch_size=_BATCH).to_reader().read_all().num_rows,
        expected=ROWS,
    ),
    "count_rows": Call(run=lambda s: s.base.count_rows("value >= 100"), expected=ROWS - 100),
    "take": Call(run=_take, expected=len(range(0, ROWS, 997))),
    "open_and_read": Call(
        run=lambda s: lancelake.dataset(s.folder / _WAREHOUSE).to_table().num_rows, expected=ROWS
    ),
    "check_data": Call(run=_check, expected=0),
    "sql": Call(run=_query, expected=[ROWS, _BEFORE]),
    "merge_insert": Call(
        run=_merge,
        expected=(_CHANGED, _CHANGED),
        changes=True,
        sums=(_MERGED,),
        counts=(ROWS, ROWS + _CHANGED),
    ),
    "update": Call(run=_update, expected=_CHANGED, changes=True, sums=(_BEFORE + _CHANGED,)),
    "delete": Call(
        run=_delete,
        expected=_CHANGED,
        changes=True,
        sums=(_BEFORE - sum(range(_CHANGED)),),
        counts=(ROWS, ROWS - _CHANGED),
    ),
    "compact_files": Call(run=_compact, expected=ROWS, changes=True),
    "index_btree": Call(run=_index("BTREE", "key"), expected=1, changes=True),
    "index_bitmap": Call(run=_index("BITMAP", "text"), expected=1, changes=True),
    "index_text": Call(run=_index("INVERTED", "text"), expected=1, changes=True),
    "index_vector": Call(run=_index("IVF_PQ", "vector", **_VECTORS), expected=1, changes=True),
    "copy_batches": Call(
        run=lambda s: _copied(s, lambda ds: ds.to_batches(batch_size=_BATCH)),
        expected=ROWS,
        changes=True,
    ),
    "copy_reader": Call(
        run=lambda s: _copied(s, lambda ds: ds.scanner().to_reader()), expected=ROWS, changes=True
    ),
}


@dataclass(kw_only=True)
class Outcome:
    """What became of the interrupts of a call."""

    raised: int = 0
    completed: int = 0
    wrong: list[str] = field(default_factory=list)
    swallowed: int = 0
    """Interrupts that Python ignored, for instance in a finalizer; all rows came."""

    def __str__(self) -> str:
        kinds = Counter(text.splitlines()[-1][:150] for text in self.wrong)
        return (
            f"{self.raised} raised, {self.completed} completed, {self.swallowed} ignored, "
            f"{len(self.wrong)} wrong {dict(kinds) if kinds else ''}"
        )


def interrupt(call: Call, stage: Stage, times: int, seed: int) -> Outcome:
    """Interrupt a call, each time after another delay, and check what it leaves."""
    chance = random.Random(seed)
    outcome = Outcome()
    faulthandler.dump_traceback_later(_STUCK_S, exit=True)
    if call.changes:
        stage.fresh()
    begun = time.perf_counter()
    call.run(stage)
    takes_s = time.perf_counter() - begun
    for number in range(times):
        faulthandler.dump_traceback_later(_STUCK_S, exit=True)
        delay_s = chance.uniform(1e-4, 5e-3 if number % 2 else max(takes_s, 5e-3))
        if call.changes:
            stage.fresh()
        _attempt(call, stage, delay_s, RAISED[number % len(RAISED)], outcome)
        if call.changes:
            _check_left(call, stage, outcome)
    faulthandler.cancel_dump_traceback_later()
    return outcome


def _attempt(
    call: Call, stage: Stage, delay_s: float, kind: type[BaseException], outcome: Outcome
) -> None:
    fired = []
    error = kind("raised by the handler")

    def handler(_number: int, _frame: FrameType | None) -> None:
        fired.append(True)
        raise error

    before = signal.signal(signal.SIGALRM, handler)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, delay_s)
            done = call.run(stage)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except BaseException as raised:  # noqa: BLE001  # whatever it is, is judged
        if raised is error:
            outcome.raised += 1
        else:
            outcome.wrong.append("".join(traceback.format_exception(raised)))
    else:
        outcome.completed += 1
        outcome.swallowed += len(fired)
        if done != call.expected:
            outcome.wrong.append(f"returned {done}, not {call.expected}")
    finally:
        signal.signal(signal.SIGALRM, before)


def _check_left(call: Call, stage: Stage, outcome: Outcome) -> None:
    values = lancelake.dataset(stage.copy).to_table(columns=["value"])["value"].to_pylist()
    if len(values) not in call.counts or sum(values) not in (_BEFORE, *call.sums):
        outcome.wrong.append(f"left {len(values)} rows with the sum {sum(values)}")


def _stages(fragments: list[int]) -> Iterator[Stage]:
    for count in fragments:
        with tempfile.TemporaryDirectory(prefix="interrupts-") as name:
            yield Stage.of(Path(name), count)


def _answer(fragments: list[int], times: int, seed: int) -> None:
    for stage in _stages(fragments):
        for line in sys.stdin:
            outcome = interrupt(CALLS[line.strip()], stage, times, seed)
            print(json.dumps(outcome.wrong), flush=True)


def main() -> None:
    """Interrupt calls many times and print what became of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fragments", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--calls", nargs="+", choices=CALLS, default=list(CALLS))
    parser.add_argument(
        "--asked",
        action="store_true",
        help="interrupt calls whose names are read, one per line, and answer with what is wrong",
    )
    options = parser.parse_args()
    faulthandler.enable()
    sys.unraisablehook = lambda _: None
    if options.asked:
        _answer(options.fragments, options.times, options.seed)
        return
    failed = False
    for stage in _stages(options.fragments):
        for name in options.calls:
            begun = time.perf_counter()
            outcome = interrupt(CALLS[name], stage, options.times, options.seed)
            took = f"{time.perf_counter() - begun:.0f} s"
            print(f"{name}, {stage.fragments} fragments, {took}: {outcome}", flush=True)
            for text in sorted(set(outcome.wrong))[:3]:
                print(text, flush=True)
            failed = failed or bool(outcome.wrong)
    sys.exit(failed)


if __name__ == "__main__":
    main()
