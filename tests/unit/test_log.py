"""Tests of log records, and of what OpenTelemetry gets."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from lancelake import log
from tests.support.set_clock import ManualClock

LOGGER = log.COMPACTION
SENTENCE = "compacted {table} into version {version}"


def _operation(clock: ManualClock | None = None, started_s: float | None = None) -> log.Operation:
    return log.Operation(
        LOGGER, SENTENCE, "t.lance", clock=clock or ManualClock(), started_s=started_s
    )


def _ran(program: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *options, "-c", program]
    return subprocess.run(command, check=True, capture_output=True, text=True)


def test_an_operation_makes_a_record_with_a_sentence_and_fields(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ManualClock()
    with caplog.at_level(logging.INFO, "lancelake"), _operation(clock) as operation:
        clock.sleep(1.5)
        operation.facts |= {"version": 7, "files_removed": 1200, "rows": 1, "rebases": 0}
        operation.facts |= {"lost_replies": 1, "manifest_bytes": 9, "operation": "OPTIMIZE"}
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("lancelake.compaction", "INFO")
    assert record.getMessage() == (
        "compacted t.lance into version 7: 1,200 files removed, 1 row, 1 lost reply, 1,500 ms"
    )
    assert {"files_removed": 1200, "rebases": 0, "manifest_bytes": 9}.items() <= vars(
        record
    ).items()
    assert {"table": "t.lance", "milliseconds": 1500}.items() <= vars(record).items()


def test_the_duration_counts_from_where_the_work_began(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    begun_s = clock.monotonic_s()
    clock.sleep(2)
    with caplog.at_level(logging.INFO, "lancelake"), _operation(clock, begun_s) as operation:
        operation.facts["version"] = 1
    assert vars(caplog.records[0])["milliseconds"] == 2000


def test_an_operation_without_facts_makes_no_record(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "lancelake"), _operation():
        pass
    assert caplog.records == []


def test_a_failed_operation_makes_no_record_and_its_error_is_raised(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with (
        caplog.at_level(logging.DEBUG, "lancelake"),
        pytest.raises(ValueError, match="no"),
        _operation() as operation,
    ):
        operation.facts["version"] = 1
        raise ValueError("no")
    assert caplog.records == []


def test_a_retry_is_a_warning_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    log.report_retry(log.STORAGE, ValueError("the store is busy"), 0.25, retry=1)
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("lancelake.storage", "WARNING")
    assert record.getMessage() == "the store is busy; it is tried again in 250 ms"
    fields = {"reason": "the store is busy", "delay_milliseconds": 250, "retry": 1}
    assert fields.items() <= vars(record).items()


class _Broken(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        raise ValueError("broken filter")


def test_a_handler_that_fails_leaves_the_operation() -> None:
    handler = logging.NullHandler()
    broken = _Broken()
    LOGGER.addFilter(broken)
    LOGGER.setLevel(logging.INFO)
    LOGGER.addHandler(handler)
    try:
        with pytest.warns(RuntimeWarning, match="broken filter"), _operation() as operation:
            operation.facts["version"] = 1
    finally:
        LOGGER.removeFilter(broken)
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(logging.NOTSET)


def test_nothing_is_printed_unless_logging_is_set_up(tmp_path: Path) -> None:
    done = _ran(f"""
import pyarrow as pa, lancelake
from lancelake import log
ds = lancelake.write_dataset(pa.table({{"a": [1]}}), {str(tmp_path / "t")!r})
ds.delete("a = 1")
log.report_retry(log.STORAGE, "busy", 0.0)
""")
    assert (done.stdout, done.stderr) == ("", "")


def test_datafusion_stays_at_warning_unless_the_program_says_otherwise(tmp_path: Path) -> None:
    done = _ran(f"""
import logging, sys
logging.basicConfig(level=logging.DEBUG, stream=sys.stdout, format="%(name)s")
logging.getLogger("sqlparser").setLevel(logging.DEBUG)
import pyarrow as pa, lancelake
ds = lancelake.write_dataset(pa.table({{"a": [1]}}), {str(tmp_path / "t")!r})
ds.update({{"a": "a + 1"}}, where="a > 0")
ds.sql("SELECT sum(a) AS s FROM dataset").build().to_batch_records()
""")
    names = {name.partition(".")[0] for name in done.stdout.split()}
    assert {"lancelake", "sqlparser"} <= names
    assert not [name for name in names if name.startswith("datafusion")]


def test_opentelemetry_is_not_imported_for_programs_without_it() -> None:
    program = "import lancelake.table.publish, sys; print('opentelemetry' in sys.modules)"
    assert _ran(program).stdout.split() == ["False"]


TRACED = """
import json, sys
import pyarrow as pa
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
trace.set_tracer_provider(provider)
metrics.set_meter_provider(MeterProvider([reader]))

import lancelake
from lancelake import log

for n in range(3):
    ds = lancelake.write_dataset(pa.table({"a": [n]}), sys.argv[1], mode="append")
with trace.get_tracer("app").start_as_current_span("job"):
    ds.optimize.compact_files()
try:
    ds.delete("no_such_column = 1")
except lancelake.LanceTableError:
    pass
try:
    with log.Operation(log.CLEANUP, "cleaned up {table}", "t"):
        raise ValueError("no")
except ValueError:
    pass
log.report_retry(log.STORAGE, "busy", 0.0)

ended = spans.get_finished_spans()
names = {span.context.span_id: span.name for span in ended}
print(json.dumps({
    "spans": [
        {
            "name": span.name,
            "parent": span.parent and names[span.parent.span_id],
            "status": span.status.status_code.name,
            "lasted": span.end_time > span.start_time,
            **span.attributes,
        }
        for span in ended
    ],
    "points": [
        {"name": metric.name, **point.attributes, "count": getattr(point, "value", None)}
        for resource in reader.get_metrics_data().resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
    ],
}))
"""


def test_operations_are_spans_and_metrics_of_opentelemetry(tmp_path: Path) -> None:
    program = TRACED.replace("sys.argv[1]", repr(str(tmp_path / "t")))
    found = json.loads(_ran(program).stdout)
    shown = [(s["name"], s["parent"], s.get("lancelake.operation")) for s in found["spans"]]
    assert shown == [
        *[("lancelake.commit", None, "WRITE")] * 3,
        ("lancelake.commit", "lancelake.compaction", "RESERVE FRAGMENTS"),
        ("lancelake.commit", "lancelake.compaction", "OPTIMIZE"),
        ("lancelake.compaction", "job", "OPTIMIZE"),
        ("job", None, None),
        ("lancelake.cleanup", None, None),
    ]
    write, failed = found["spans"][0], found["spans"][-1]
    assert (write["lancelake.table"], write["lancelake.rows_inserted"]) == (str(tmp_path / "t"), 1)
    assert (write["lancelake.version"], write["lancelake.attempts"]) == (1, 1)
    assert all(span["lasted"] for span in found["spans"])
    assert (write["status"], failed["status"]) == ("UNSET", "ERROR")
    kind, name, failure = "lancelake.kind", "lancelake.operation", "error.type"
    counts = {
        (point[kind], point.get(name), point.get(failure)): point["count"]
        for point in found["points"]
        if point["name"] == "lancelake.operations"
    }
    assert counts == {
        ("lancelake.commit", "WRITE", None): 3,
        ("lancelake.commit", "RESERVE FRAGMENTS", None): 1,
        ("lancelake.commit", "OPTIMIZE", None): 1,
        ("lancelake.compaction", "OPTIMIZE", None): 1,
        ("lancelake.cleanup", None, "ValueError"): 1,
    }
    names = {point["name"] for point in found["points"]}
    assert names == {"lancelake.operations", "lancelake.operation.duration", "lancelake.retries"}
