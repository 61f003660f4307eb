"""Uncommitted rows that were written for a version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lancelake.commit.snapshot import Snapshot
from lancelake.format.fragment import Fragment
from lancelake.format.ids import FragmentId


def staged(base: Snapshot, fragments: Sequence[Fragment]) -> Snapshot:
    """Return the version with only these fragments."""
    numbered = tuple(
        replace(fragment, id=FragmentId(number)) for number, fragment in enumerate(fragments)
    )
    manifest = replace(base.manifest, fragments=numbered)
    # What indices know of fragments with these numbers is about other rows.
    return replace(base, file=replace(base.file, manifest=manifest, index_section=None))
