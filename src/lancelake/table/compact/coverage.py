"""Fragments covered by indices, and how that limits moving their rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import UnsupportedError
from lancelake.format.fragment import Fragment
from lancelake.index.recorded_moves import with_inline_moves
from lancelake.txn import fragment_reuse


def coverage_by_index(base: Snapshot) -> list[BitMap]:
    """Return the fragments that each index covers, considering earlier compactions."""
    indices = fragment_reuse.followed(with_inline_moves(base))
    return [i.fragments() or BitMap() for i in indices if not i.is_system]


def covers_some(coverage: Iterable[BitMap], fragments: Sequence[Fragment]) -> bool:
    """Whether an index covers any of these fragments."""
    moved = BitMap(f.id for f in fragments)
    return any(covered & moved for covered in coverage)


def covers_part(coverage: Iterable[BitMap], fragments: Sequence[Fragment]) -> bool:
    """Whether an index covers some but not all of these fragments."""
    moved = BitMap(f.id for f in fragments)
    return any(covered & moved and not moved <= covered for covered in coverage)


def ensure_known_coverage(base: Snapshot) -> None:
    """Refuse to move rows of an index that does not record which fragments it covers."""
    for index in base.indices:
        if not index.is_system and index.fragments() is None:
            raise UnsupportedError(
                f"index {index.name!r} does not record which fragments it covers",
                table=base.location.uri,
                action="Rebuild the index, or drop it.",
                index=index.name,
            )
