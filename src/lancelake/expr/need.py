"""Needs: what a text must contain, as a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Contains:
    """A part that the text must contain."""

    text: str


@dataclass(frozen=True, slots=True)
class AllOf:
    """Needs that must all be met; without any, every text will do."""

    parts: tuple[Need, ...] = ()


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Needs of which one must be met."""

    parts: tuple[Need, ...]


Need = Contains | AllOf | AnyOf
NOTHING = AllOf()


def all_needed(parts: Sequence[Need]) -> Need:
    """Join needs that must all be met."""
    known = tuple(part for part in parts if part != NOTHING)
    return known[0] if len(known) == 1 else AllOf(known)


def any_needed(parts: Sequence[Need]) -> Need:
    """Join needs of which one must be met."""
    return NOTHING if NOTHING in parts else AnyOf(tuple(parts))
