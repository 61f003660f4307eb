"""Cached values are computed once, without locks shared between objects."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from lancelake.format.frozen import computed_once

WAIT_S = 30


@dataclass(frozen=True)
class Numbers:
    name: str
    asked: list[str]

    @computed_once
    def length(self) -> int:
        """Count the letters."""
        self.asked.append(self.name)
        return len(self.name)


def test_value_is_computed_when_first_asked_for() -> None:
    numbers = Numbers("abc", [])
    assert numbers.asked == []
    assert (numbers.length, numbers.length) == (3, 3)
    assert numbers.asked == ["abc"]


def test_objects_have_values_of_their_own() -> None:
    assert (Numbers("a", []).length, Numbers("ab", []).length) == (1, 2)


def test_value_does_not_count_for_equality() -> None:
    one, other = Numbers("a", []), Numbers("a", [])
    assert one.length == 1
    assert one.asked == ["a"]
    assert Numbers("a", ["a"]) == one
    assert other != one


def test_class_shows_what_the_value_means() -> None:
    assert Numbers.length.__doc__ == "Count the letters."


def test_slow_object_does_not_stop_another() -> None:
    started, done = threading.Event(), threading.Event()

    class Slow:
        def __init__(self, *, waits: bool) -> None:
            self.waits = waits

        @computed_once
        def value(self) -> int:
            if self.waits:
                started.set()
                done.wait(WAIT_S)
            return 1

    waiting = Slow(waits=True)
    thread = threading.Thread(target=lambda: waiting.value)
    thread.start()
    assert started.wait(WAIT_S)
    assert Slow(waits=False).value == 1
    assert thread.is_alive()
    done.set()
    thread.join(WAIT_S)
