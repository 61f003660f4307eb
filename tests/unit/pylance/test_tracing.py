"""Tests of events for callbacks and files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake import events
from lancelake.pylance.tracing import (
    TraceEvent,
    capture_trace_events,
    shutdown_tracing,
    trace_to_chrome,
)

ROWS = pa.table({"a": range(10)})


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    yield
    shutdown_tracing()


def _kinds(seen: list[TraceEvent], target: str, *names: str) -> list[tuple[str, ...]]:
    return [
        tuple(event.args.get(name, "") for name in names)
        for event in seen
        if event.target == target
    ]


def test_the_operations_on_a_table_are_traced(tmp_path: Path) -> None:
    seen: list[TraceEvent] = []
    capture_trace_events(seen.append)
    table = lance.write_dataset(ROWS, tmp_path / "t", max_rows_per_file=5)
    table.delete("a = 1")
    lance.dataset(tmp_path / "t").to_table()
    table.optimize.compact_files()
    table.cleanup_old_versions(older_than=timedelta(0))
    shutdown_tracing()
    told = _kinds(seen, events.DATASET, "event", "operation", "mode", "status")
    assert ("writing", "", "Create", "") in told
    assert ("committed", "Overwrite", "", "") in told
    assert ("committed", "Delete", "", "") in told
    assert ("committed", "Rewrite", "", "") in told
    assert ("loading", "", "", "success") in told
    assert ("loading", "", "", "error") in told
    assert ("compacting", "", "", "") in told
    assert ("cleaning", "", "", "") in told
    files = _kinds(seen, events.FILES, "mode", "type")
    assert {("create", "data"), ("create", "deletion"), ("create", "manifest")} <= set(files)
    assert {("delete", "data"), ("delete", "manifest")} <= set(files)
    assert ("plan_run", "9") in _kinds(seen, events.EXECUTION, "type", "output_rows")
    assert all({"timestamp", "client_version"} <= event.args.keys() for event in seen)


def test_a_scan_reports_once_and_to_its_own_callback(tmp_path: Path) -> None:
    seen: list[TraceEvent] = []
    own: list[lance.ScanStatistics] = []
    table = lance.write_dataset(ROWS, tmp_path / "t")
    capture_trace_events(seen.append)
    table.scanner(scan_stats_callback=own.append).to_table()
    shutdown_tracing()
    assert len(_kinds(seen, events.EXECUTION, "type")) == 1
    assert len(own) == 1


def test_nothing_is_traced_after_the_end(tmp_path: Path) -> None:
    seen: list[TraceEvent] = []
    capture_trace_events(seen.append)
    shutdown_tracing()
    lance.write_dataset(ROWS, tmp_path / "t")
    assert seen == []
    assert not events.are_heard()


def test_a_callback_that_fails_does_not_stop_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[TraceEvent] = []

    def fail(event: TraceEvent) -> None:
        raise RuntimeError(event.target)

    capture_trace_events(fail)
    capture_trace_events(seen.append)
    lance.write_dataset(ROWS, tmp_path / "t")
    shutdown_tracing()
    assert seen
    assert "the callback for trace events failed" in caplog.text


def test_a_chrome_trace_is_json(tmp_path: Path) -> None:
    trace_to_chrome(file=str(tmp_path / "trace.json"))
    lance.write_dataset(ROWS, tmp_path / "t")
    shutdown_tracing()
    entries = json.loads((tmp_path / "trace.json").read_text())
    assert {entry["ph"] for entry in entries} == {"i"}
    assert "committed" in [entry["name"] for entry in entries]


def test_a_trace_without_events_is_json(tmp_path: Path) -> None:
    trace_to_chrome(file=str(tmp_path / "trace.json"))
    shutdown_tracing()
    assert json.loads((tmp_path / "trace.json").read_text()) == []


def test_an_event_is_formatted_as_pylance_formats_it() -> None:
    event = TraceEvent("lance::file_audit", {"mode": "create"})
    assert repr(event) == 'TraceEvent(target=lance::file_audit, args={"mode": "create"})'
