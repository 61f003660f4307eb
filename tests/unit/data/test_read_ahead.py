from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from lancelake.data.arrays.batches import read_ahead


def test_the_same_items_come_in_the_same_order() -> None:
    assert list(read_ahead(iter(range(100)))) == list(range(100))


def test_an_error_is_raised_after_the_items_before_it() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise KeyError("broken")

    found = read_ahead(items())
    assert next(found) == 1
    with pytest.raises(KeyError, match="broken"):
        next(found)


def test_no_more_is_made_than_may_be_held() -> None:
    made: list[int] = []
    enough = threading.Event()

    def items() -> Iterator[int]:
        for number in range(10):
            made.append(number)
            if number == 3:
                enough.set()
            yield number

    found = read_ahead(items(), held=2)
    assert next(found) == 0
    # One was taken, two are held, one waits to be held.
    assert enough.wait(10)
    assert made == [0, 1, 2, 3]
    found.close()


def test_who_stops_early_leaves_no_stream_behind() -> None:
    ended = threading.Event()

    def items() -> Iterator[int]:
        try:
            yield from range(1000)
        finally:
            ended.set()

    found = read_ahead(items())
    next(found)
    found.close()
    assert ended.wait(60)
