"""Journal of a process: one line per event, written before it continues."""

from __future__ import annotations

import json
import os
import time
from typing import Any


class Journal:
    """A log that survives the death of its writer."""

    def __init__(self, path: str, process: str, library: str) -> None:
        """Begin, or go on with, the log of a process."""
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self.process = process
        self.library = library

    def write(self, what: str, /, **facts: Any) -> None:
        """Add a line."""
        line = json.dumps({"t": what, **facts}, separators=(",", ":")) + "\n"
        os.write(self._file, line.encode())

    def invoke(self, op: str, kind: str, args: dict[str, Any], read_version: int) -> None:
        """Say what will be tried."""
        self.write(
            "invoke",
            op=op,
            kind=kind,
            args=args,
            read_version=read_version,
            at=now(),
            process=self.process,
            library=self.library,
        )

    def end(self, op: str, outcome: str, **facts: Any) -> None:
        """Say what came of it: `ok`, `fail` or `unknown`."""
        self.write(outcome, op=op, at=now(), **facts)

    def read(
        self, version: int, rows: list[list[Any]], columns: dict[str, list[int]], how: str
    ) -> None:
        """Say which rows a version has."""
        self.write(
            "read",
            version=version,
            rows=rows,
            columns=columns,
            how=how,
            process=self.process,
            library=self.library,
        )

    def seen(self, version: int, asked: int) -> None:
        """Say which version was the newest."""
        self.write("seen", version=version, asked=asked, answered=now(), process=self.process)

    def feed(self, begin: int, end: int, changes: list[list[Any]]) -> None:
        """Record what the change feed reports."""
        self.write("feed", begin=begin, end=end, changes=changes, process=self.process)

    def fault(self, what: str, call: str, path: str) -> None:
        """Say which call of a store went wrong on purpose."""
        self.write("fault", what=what, call=call, path=path)

    def commit(self, version: int, kind: str, read_version: int, restored: int | None) -> None:
        """Say how a version came to be."""
        self.write(
            "commit", version=version, kind=kind, read_version=read_version, restored=restored
        )


def now() -> int:
    """Return the time on a clock that all processes of a machine share."""
    return time.monotonic_ns()
