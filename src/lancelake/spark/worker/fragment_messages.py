"""Fragments as messages of workers to the process that commits them."""

from __future__ import annotations

from collections.abc import Iterable

from lancelake.engine import wire
from lancelake.format.fragment import Fragment
from lancelake.format.fragment_bytes import from_bytes, to_bytes


def sealed_fragments(fragments: Iterable[Fragment]) -> bytes:
    """Return the message of a task that wrote fragments."""
    return wire.seal(to_bytes(fragments))


def unsealed_fragments(messages: Iterable[bytes]) -> tuple[Fragment, ...]:
    """Return the fragments that tasks wrote, in the order of their messages."""
    return tuple(f for message in messages for f in from_bytes(wire.unseal(message)))
