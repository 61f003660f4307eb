"""Tests of events and their listeners."""

from __future__ import annotations

from lancelake import events
from lancelake.events import Event


class Notes:
    """Remembers events."""

    def __init__(self) -> None:
        self.heard: list[Event] = []

    def hear(self, event: Event) -> None:
        self.heard.append(event)


def test_a_listener_hears_events_until_it_is_ignored() -> None:
    notes = Notes()
    events.emit("target", a=0)
    events.listen(notes.hear)
    assert events.are_heard()
    events.emit("target", a=1, b=None)
    events.ignore(notes.hear)
    events.emit("target", a=2)
    assert notes.heard == [Event(target="target", facts={"a": "1", "b": "None"})]


def test_listeners_do_not_disturb_each_other() -> None:
    one, other = Notes(), Notes()
    events.listen(one.hear)
    events.listen(other.hear)
    events.ignore(one.hear)
    events.emit("target")
    events.ignore(other.hear)
    assert (len(one.heard), len(other.heard)) == (0, 1)
