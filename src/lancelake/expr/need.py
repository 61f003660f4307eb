"""Needs: substrings that a text must contain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Contains:
    """A substring that the text must contain."""

    text: str


@dataclass(frozen=True, slots=True)
class AllOf:
    """Needs that must all be met; an empty list is met by every text."""

    parts: tuple[Need, ...] = ()


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Needs of which at least one must be met."""

    parts: tuple[Need, ...]


Need = Contains | AllOf | AnyOf
NOTHING = AllOf()


def all_needed(parts: Sequence[Need]) -> Need:
    """Combine needs that must all be met."""
    known = tuple(part for part in parts if part != NOTHING)
    return known[0] if len(known) == 1 else AllOf(known)


def any_needed(parts: Sequence[Need]) -> Need:
    """Combine needs of which at least one must be met."""
    return NOTHING if NOTHING in parts else AnyOf(tuple(parts))
