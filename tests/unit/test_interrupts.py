"""Exceptions of signal handlers are told from failures of the code that they interrupt."""

from __future__ import annotations

import functools
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

from lancelake.errors import InvalidRequestError, ObjectNotFoundError, StorageError
from lancelake.interrupts import pass_on, raised_by_handler
from lancelake.storage.store import DiskErrors

Handler = Callable[[int, FrameType | None], None]


class DeadlineError(TimeoutError):
    """What a scheduler's handler raises."""


def late(_number: int, _frame: FrameType | None) -> None:
    raise DeadlineError


class Late:
    def __call__(self, number: int, frame: FrameType | None) -> None:
        late(number, frame)

    def method(self, number: int, frame: FrameType | None) -> None:
        late(number, frame)


@contextmanager
def handled_by(handler: Handler) -> Iterator[None]:
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)


def raise_signal() -> None:
    os.kill(os.getpid(), signal.SIGUSR1)
    # The handler runs before this step at the latest.
    threading.get_ident()


@pytest.mark.parametrize(
    "handler",
    [late, Late(), Late().method, functools.partial(late)],
    ids=lambda h: type(h).__name__,
)
def test_an_exception_of_a_handler_is_recognized(handler: Handler) -> None:
    with handled_by(handler):
        try:
            raise_signal()
        except DeadlineError as error:
            assert raised_by_handler(error)


def test_an_exception_of_other_code_is_none_of_a_handler() -> None:
    with handled_by(late), pytest.raises(ZeroDivisionError) as caught:
        _ = 1 // 0
    assert not raised_by_handler(caught.value)
    pass_on(caught.value)


def test_an_error_of_the_system_is_translated(tmp_path: Path) -> None:
    with handled_by(late), pytest.raises(ObjectNotFoundError), DiskErrors(str(tmp_path)):
        (tmp_path / "none").read_bytes()


def test_an_exception_that_the_caller_handles_is_left_alone() -> None:
    with handled_by(late):
        try:
            raise_signal()
        except DeadlineError:
            assert InvalidRequestError("something else").problem == "something else"


def test_an_error_translates_an_exception_of_a_handler_into_itself() -> None:
    translate: dict[str, object] = {"__name__": "lancelake.somewhere", "StorageError": StorageError}
    exec(
        "def call(function):\n"
        "    try:\n"
        "        function()\n"
        "    except OSError as error:\n"
        "        raise StorageError('cannot be read') from error\n",
        translate,
    )
    call = translate["call"]
    assert callable(call)
    with handled_by(late), pytest.raises(DeadlineError):
        call(raise_signal)
