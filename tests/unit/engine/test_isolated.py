"""Tasks that end their process do not end that of the caller."""

from __future__ import annotations

import os
from dataclasses import dataclass

import pytest

from lancelake.engine.isolated import run_isolated
from lancelake.errors import CorruptTableError


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """A task of several steps: to return a number, or to fail in some way."""

    steps: tuple[int | str, ...]
    memory_bytes: int = 1

    def run(self) -> bytes:
        for step in self.steps:
            match step:
                case "abort":
                    os.abort()
                case "exit":
                    os._exit(3)
                case "error":
                    raise CorruptTableError("damaged", path="x")
                case "print":
                    os.write(1, b"no message")
        return repr(self.steps).encode()

    def parts(self) -> tuple[Steps, ...]:
        return tuple(Steps(steps=(step,)) for step in self.steps)

    def lost(self, reason: str) -> bytes:
        return f"{self.steps[0]}: {reason}".encode()


def test_results_are_in_the_order_of_the_tasks() -> None:
    found = list(run_isolated([Steps(steps=(number,)) for number in range(20)]))
    assert found == [f"({number},)".encode() for number in range(20)]


def test_a_task_that_ends_its_process_is_run_in_parts() -> None:
    found = list(run_isolated([Steps(steps=(1, "abort", 2)), Steps(steps=(3,))]))
    assert found == [b"(1,)", b"abort: signal SIGABRT", b"(2,)", b"(3,)"]


def test_an_exit_code_is_named() -> None:
    assert list(run_isolated([Steps(steps=("exit",))])) == [b"exit: exit code 3"]


def test_an_error_of_a_task_is_raised() -> None:
    with pytest.raises(CorruptTableError, match="damaged"):
        list(run_isolated([Steps(steps=("error",))]))


def test_what_a_task_prints_is_no_result() -> None:
    assert list(run_isolated([Steps(steps=("print",))])) == [b"('print',)"]
