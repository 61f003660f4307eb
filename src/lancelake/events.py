"""Events for listeners, and the steps that follow every commit.

Events are loads, writes, commits, files and scans; without a listener, one costs a look at an empty
tuple. The packages that own the steps install them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

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


CommitStep: TypeAlias = Callable[[Any], None]
"""Called with the version that was just committed (`table.publish.Committed`)."""

_commit_steps: list[CommitStep] = []


def add_commit_step(step: CommitStep) -> None:
    """Register a step for every commit whose caller passes no steps."""
    if step not in _commit_steps:
        _commit_steps.append(step)


def commit_steps() -> tuple[CommitStep, ...]:
    """Return the installed steps, in order."""
    return tuple(_commit_steps)


def commit_steps_except(step: CommitStep) -> tuple[CommitStep, ...]:
    """Return the installed steps that follow a commit made by one of them."""
    return tuple(other for other in _commit_steps if other != step)
