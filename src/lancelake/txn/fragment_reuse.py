"""Fragment reuse index: maps compacted fragments to those that have their rows."""

from __future__ import annotations

from dataclasses import replace

from pyroaring import BitMap

from lancelake.format.index_meta import FRAGMENT_REUSE, IndexMetadata
from lancelake.format.unknown import parse
from lancelake.proto import table_pb2

Indices = tuple[IndexMetadata, ...]
Move = tuple[BitMap, BitMap]
"""Compacted fragments, and those that have their rows."""


def followed(indices: Indices) -> Indices:
    """Update index coverage to the fragments that have the rows now."""
    moves = _moves(next((i for i in indices if i.name == FRAGMENT_REUSE), None))
    return tuple(_followed(i, moves) for i in indices) if moves else indices


def has_hidden_moves(indices: Indices) -> bool:
    """Whether the moves are stored in a file, so that coverage cannot be updated."""
    entry = next((i for i in indices if i.name == FRAGMENT_REUSE), None)
    details = None if entry is None else _details(entry)
    return details is not None and details.WhichOneof("content") == "external"


def _moves(entry: IndexMetadata | None) -> list[Move]:
    details = None if entry is None else _details(entry)
    if details is None:
        return []
    return [
        (BitMap(f.id for f in group.old_fragments), BitMap(f.id for f in group.new_fragments))
        for version in details.inline.versions
        for group in version.groups
    ]


def _details(entry: IndexMetadata) -> table_pb2.FragmentReuseIndexDetails | None:
    if entry.details is None:
        return None
    message = table_pb2.FragmentReuseIndexDetails()
    parse(message, entry.details.value, what="fragment reuse details")
    return message


def _followed(index: IndexMetadata, moves: list[Move]) -> IndexMetadata:
    covered = index.fragments()
    if covered is None or index.is_system:
        return index
    now = BitMap(covered)
    for old, new in moves:
        if not old & now:
            continue
        # Covered and uncovered rows of a partly covered group cannot be distinguished.
        now = (now - old) | new if old <= now else now - old
    return index if now == covered else replace(index, fragment_bitmap=bytes(now.serialize()))
