"""Fragment reuse index: maps compacted fragments to those that have their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyroaring import BitMap

from lancelake.format.frozen import parse
from lancelake.format.index_meta import FRAGMENT_REUSE, IndexMetadata
from lancelake.proto import table_pb2

Indices = tuple[IndexMetadata, ...]
Move = tuple[BitMap, BitMap]
"""Compacted fragments, and those that have their rows."""


def followed(indices: Indices) -> Indices:
    """Update index coverage to the fragments that have the rows now."""
    moves = fragment_moves(indices)
    return tuple(_followed(i, moves) for i in indices) if moves else indices


def has_hidden_moves(indices: Indices) -> bool:
    """Whether the moves are stored in a file, so that coverage cannot be updated."""
    details = recorded(indices)
    return details is not None and details.WhichOneof("content") == "external"


def fragment_moves(indices: Indices) -> list[Move]:
    """Return the moves recorded in index entries, oldest first."""
    details = recorded(indices)
    if details is None:
        return []
    return [
        (BitMap(f.id for f in group.old_fragments), BitMap(f.id for f in group.new_fragments))
        for version in details.inline.versions
        for group in version.groups
    ]


def fragments_after(fragments: BitMap, moves: Sequence[Move]) -> BitMap:
    """Return the fragments that have the rows of others now."""
    now = BitMap(fragments)
    for old, new in moves:
        if not old & now:
            continue
        # Covered and uncovered rows of a partly covered group cannot be distinguished.
        now = (now - old) | new if old <= now else now - old
    return now


def recorded(indices: Indices) -> table_pb2.FragmentReuseIndexDetails | None:
    """Return the record of moved rows among index entries; None if there is none."""
    entry = next((i for i in indices if i.name == FRAGMENT_REUSE), None)
    if entry is None or entry.details is None:
        return None
    message = table_pb2.FragmentReuseIndexDetails()
    parse(message, entry.details.value, what="fragment reuse details")
    return message


def _followed(index: IndexMetadata, moves: Sequence[Move]) -> IndexMetadata:
    covered = index.fragments()
    if covered is None or index.is_system:
        return index
    now = fragments_after(covered, moves)
    return index if now == covered else replace(index, fragment_bitmap=bytes(now.serialize()))
