"""Events of the package, for listeners: loads, writes, commits, files and scans.

Without a listener an event costs a look at an empty tuple.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

DATASET = "lance::dataset_events"
FILES = "lance::file_audit"
EXECUTION = "lance::execution"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened."""

    target: str
    """The kind of event, as official Lance names it."""

    facts: Mapping[str, str]


Listener: TypeAlias = Callable[[Event], None]
"""Called in the thread of the event; it must be fast and must not raise."""

_listeners: tuple[Listener, ...] = ()


def listen(listener: Listener) -> None:
    """Call a listener with every event from now on."""
    global _listeners  # noqa: PLW0603  # a process has one list of listeners
    _listeners = (*_listeners, listener)


def ignore(listener: Listener) -> None:
    """Stop calling a listener."""
    global _listeners  # noqa: PLW0603  # a process has one list of listeners
    _listeners = tuple(known for known in _listeners if known != listener)


def are_heard() -> bool:
    """Whether anyone listens."""
    return bool(_listeners)


def emit(target: str, **facts: object) -> None:
    """Tell all listeners; the values become text."""
    if not _listeners:
        return
    event = Event(target=target, facts={name: str(value) for name, value in facts.items()})
    for listener in _listeners:
        listener(event)
