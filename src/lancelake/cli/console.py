"""Consoles for standard output and standard error, and the output format."""

from __future__ import annotations

import json
import os
import sys
from enum import Enum
from typing import Any, NoReturn

from rich.console import Console

_PIPE_WIDTH = 120


class OutputFormat(Enum):
    """A table for people, or JSON for programs."""

    TABLE = "table"
    JSON = "json"


class RowFormat(Enum):
    """Rows as a table for people, or as JSON, JSON lines or CSV for programs."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"


class _PlainConsole(Console):
    """A console that does not pad lines in a pipe, and passes broken pipes to the caller."""

    def print(self, *objects: Any, **options: Any) -> None:  # as in rich
        """Print, without trailing spaces if the output is not a terminal."""
        if self.is_terminal:
            super().print(*objects, **options)
            return
        with self.capture() as captured:
            super().print(*objects, **options)
        lines = captured.get().split("\n")
        self.file.write("\n".join(line.rstrip(" ") for line in lines))

    def on_broken_pipe(self) -> NoReturn:
        """Pass the error to the caller."""
        self.quiet = True
        raise BrokenPipeError


def stdout() -> Console:
    """Return the console for results: coloured on a terminal, plain elsewhere."""
    return _console(is_stderr=False)


def stderr() -> Console:
    """Return the console for messages and progress."""
    return _console(is_stderr=True)


def print_json(value: object) -> None:
    """Print a JSON document."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def _console(*, is_stderr: bool) -> Console:
    console = _PlainConsole(stderr=is_stderr, highlight=False, markup=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _PIPE_WIDTH
    return console
