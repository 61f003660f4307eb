"""Facts read from files, which old writers left out of manifests."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import BaseId, FragmentId
from lancelake.format.index_meta import IndexFile

FileKey = tuple[BaseId | None, str]
"""The base and path of a data file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Counts, sizes and coverage that were read from files."""

    physical_rows: FrozenMap[FragmentId, int] = field(default_factory=FrozenMap)
    deleted_rows: FrozenMap[FragmentId, int] = field(default_factory=FrozenMap)
    file_sizes: FrozenMap[FileKey, int] = field(default_factory=FrozenMap)
    index_fragments: FrozenMap[UUID, bytes] = field(default_factory=FrozenMap)
    index_files: FrozenMap[UUID, tuple[IndexFile, ...]] = field(default_factory=FrozenMap)


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingFacts:
    """Facts that a version is missing."""

    physical_rows: frozenset[FragmentId] = frozenset()
    deleted_rows: frozenset[FragmentId] = frozenset()
    file_sizes: frozenset[FileKey] = frozenset()
    index_fragments: frozenset[UUID] = frozenset()
    index_files: frozenset[UUID] = frozenset()

    def __bool__(self) -> bool:
        return any(
            (
                self.physical_rows,
                self.deleted_rows,
                self.file_sizes,
                self.index_fragments,
                self.index_files,
            )
        )


NOTHING_KNOWN = Facts()
