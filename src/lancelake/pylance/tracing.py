"""Events of tables for a callback or a file, as in pylance."""

from __future__ import annotations

import atexit
import json
import os
import queue
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lancelake import events
from lancelake.core.values.metadata import default_session
from lancelake.events import Event
from lancelake.pylance.log import LOGGER
from lancelake.threads import after_fork, aside
from lancelake.version import __version__

__all__ = ["TraceEvent", "capture_trace_events", "shutdown_tracing", "trace_to_chrome"]


@dataclass(frozen=True)
class TraceEvent:
    """An event: its kind, and facts as text."""

    target: str
    args: Mapping[str, str]

    def __repr__(self) -> str:
        """Format as pylance does."""
        return f"TraceEvent(target={self.target}, args={json.dumps(dict(self.args))})"


def capture_trace_events(callback: Callable[[TraceEvent], None]) -> None:
    """Call a function with every event from now on: loads, writes, commits, files and scans.

    The calls are made in a thread of their own, soon after the event; at the end of the process it
    finishes those that are left. Errors of the function are logged.

    Args:
        callback: The function. The kinds of its events are `lance::dataset_events`,
            `lance::file_audit` and `lance::execution`.

    Examples:
        >>> from lancelake.pylance.tracing import capture_trace_events, shutdown_tracing
        >>> seen = []
        >>> capture_trace_events(seen.append)
        >>> ds.delete("id = 1")
        {'num_deleted_rows': 1}
        >>> shutdown_tracing()
        >>> [each.args["operation"] for each in seen if each.args.get("event") == "committed"]
        ['Delete']
    """
    _start(_Callback(callback))


def trace_to_chrome(*, file: str | None = None) -> None:
    """Write every event from now on to a file that the viewers of Chrome traces open.

    The file is complete at the end of the process, or after `shutdown_tracing`.

    Args:
        file: The path; by default `trace-<microseconds since 1970>.json` in the working directory.

    Examples:
        >>> from lancelake.pylance.tracing import shutdown_tracing, trace_to_chrome
        >>> trace_to_chrome(file="trace.json")
        >>> rows = ds.to_table()
        >>> shutdown_tracing()
    """
    _start(_ChromeFile(Path(file or f"trace-{default_session().clock.now_ns() // 1000}.json")))


def shutdown_tracing() -> None:
    """Stop all callbacks and files, after the events that are left.

    Examples:
        >>> from lancelake.pylance.tracing import shutdown_tracing
        >>> shutdown_tracing()
    """
    for trace in _traces:
        events.ignore(trace.hear)
        trace.stop()
    _traces.clear()


class _Callback:
    """Hands events to a function in a thread."""

    def __init__(self, callback: Callable[[TraceEvent], None]) -> None:
        self._callback = callback
        self._queue: queue.SimpleQueue[TraceEvent | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="lancelake-trace", daemon=True)  # noqa: TID251  # used aside
        aside(self._thread.start)

    def hear(self, event: Event) -> None:
        self._queue.put(TraceEvent(event.target, {**event.facts, **_surroundings()}))

    def stop(self) -> None:
        self._queue.put(None)
        aside(self._thread.join)

    def _run(self) -> None:
        while (event := self._queue.get()) is not None:
            try:
                self._callback(event)
            except Exception:  # noqa: BLE001  # whatever the user's function raises
                LOGGER.exception("the callback for trace events failed")


class _ChromeFile:
    """Writes events as instants of a Chrome trace."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8")
        self._file.write("[\n")
        self._lock = threading.Lock()
        self._separator = ""

    def hear(self, event: Event) -> None:
        entry: dict[str, Any] = {
            "name": event.facts.get("event") or event.facts.get("type") or event.target,
            "cat": event.target,
            "ph": "i",
            "s": "t",
            "ts": default_session().clock.now_ns() // 1000,
            "pid": os.getpid(),
            "tid": threading.get_ident(),
            "args": dict(event.facts),
        }
        with self._lock:
            self._file.write(f"{self._separator}{json.dumps(entry)}")
            self._separator = ",\n"

    def stop(self) -> None:
        with self._lock:
            self._file.write("\n]\n")
            self._file.close()


_traces: list[_Callback | _ChromeFile] = []


def _start(trace: _Callback | _ChromeFile) -> None:
    if not _traces:
        atexit.register(shutdown_tracing)
    _traces.append(trace)
    events.listen(trace.hear)


def _surroundings() -> dict[str, str]:
    now = datetime.fromtimestamp(default_session().clock.now_ns() // 10**9, UTC)
    return {"timestamp": now.strftime("%Y-%m-%dT%H:%M:%SZ"), "client_version": __version__}


@after_fork
def _leave_to_parent() -> None:
    """Hear nothing in a child, which has neither the threads nor the files of its own."""
    for trace in _traces:
        events.ignore(trace.hear)
    _traces.clear()
