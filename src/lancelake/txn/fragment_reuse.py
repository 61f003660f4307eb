"""Where did fragments go that were compacted without touching the indices?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyroaring import BitMap

from lancelake.format.index_meta import FRAGMENT_REUSE, IndexMetadata
from lancelake.format.unknown import parse
from lancelake.proto import table_pb2

Indices = tuple[IndexMetadata, ...]
Move = tuple[BitMap, BitMap]
"""Fragments that went, and those that hold their rows."""


def followed(indices: Indices) -> Indices:
    """Let indices cover the fragments that hold their rows today."""
    moves = fragment_moves(indices)
    return tuple(_followed(i, moves) for i in indices) if moves else indices


def has_hidden_moves(indices: Indices) -> bool:
    """Whether the moves are recorded in a file, so that coverage cannot be followed."""
    details = recorded(indices)
    return details is not None and details.WhichOneof("content") == "external"


def fragment_moves(indices: Indices) -> list[Move]:
    """Return the moves that index entries record, the oldest first."""
    details = recorded(indices)
    if details is None:
        return []
    return [
        (BitMap(f.id for f in group.old_fragments), BitMap(f.id for f in group.new_fragments))
        for version in details.inline.versions
        for group in version.groups
    ]


def fragments_after(fragments: BitMap, moves: Sequence[Move]) -> BitMap:
    """Return the fragments that hold the rows of others today."""
    now = BitMap(fragments)
    for old, new in moves:
        if not old & now:
            continue
        # Rows of a group that was covered in part cannot be told apart any more.
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
