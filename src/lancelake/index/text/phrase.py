"""Phrases: documents in which terms follow each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lancelake.index.row_ids import BoolArray
from lancelake.index.text.segments_of_bytes import runs

U32 = npt.NDArray[np.uint32]
I64 = npt.NDArray[np.int64]

_SHIFT = 32
# Documents are searched for in lists that are longer by so much.
_FEW_PER_LIST = 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Places:
    """Where a term is: its documents, ascending, and its positions in one after the other."""

    documents: U32
    ends: I64
    """End of the positions of each document."""
    positions: U32


def has_phrase(
    documents: U32, steps: Sequence[tuple[int, Sequence[Places]]], slop: int
) -> BoolArray:
    """Return which documents have terms in order.

    `steps` are the positions of the phrase, ascending, with the places of the terms of each, of
    which one is enough. A term may come up to `slop` positions later than the one before it
    demands.
    """
    reached: I64 | None = None
    before = 0
    for position, several in steps:
        here = _of_any(documents, several)
        reached = here if reached is None else _next(reached, here, position - before, slop)
        before = position
    found = np.zeros(len(documents), np.bool_)
    if reached is not None:
        found[reached >> _SHIFT] = True
    return found


def _of_any(documents: U32, several: Sequence[Places]) -> I64:
    """Return the positions of any of some terms, ascending."""
    first, *others = (_places(documents, places) for places in several)
    return np.unique(np.concatenate([first, *others])) if others else first


def _places(documents: U32, places: Places) -> I64:
    """Return the positions of a term in some documents, with the place of the document above."""
    if len(documents) * _FEW_PER_LIST <= len(places.documents):
        rows = np.searchsorted(places.documents, documents)
        rows[rows == len(places.documents)] = 0
        at = np.flatnonzero(places.documents[rows] == documents)
        rows = rows[at]
    else:
        number = np.full(int(max(places.documents[-1], documents[-1])) + 1, -1, np.int64)
        number[documents] = np.arange(len(documents))
        at = number[places.documents]
        rows = np.flatnonzero(at >= 0)
        at = at[rows]
    starts = np.where(rows > 0, places.ends[rows - 1], 0)
    counts = places.ends[rows] - starts
    chosen = places.positions[runs(starts, counts)].astype(np.int64)
    place: I64 = np.repeat(at.astype(np.int64), counts) << _SHIFT
    found: I64 = place | chosen
    return found


def _next(reached: I64, here: I64, step: int, slop: int) -> I64:
    """Return the places of a term that follow a place of the term before it."""
    document = here >> _SHIFT << _SHIFT
    latest = here - step
    if not slop:
        rows = np.minimum(np.searchsorted(reached, latest), max(0, len(reached) - 1))
        return here[reached[rows] == latest] if len(reached) else here[:0]
    earliest = np.maximum(latest - slop, document)
    is_after = np.searchsorted(reached, latest, "right") > np.searchsorted(
        reached, earliest, "left"
    )
    found: I64 = here[is_after & (latest >= document)]
    return found
