"""State of a version, and the options of a build of the next one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from lancelake.format.fragment import FileVersion, Fragment
from lancelake.format.fragment_list import FragmentList
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import BaseId, FragmentId, Version
from lancelake.format.index_meta import IndexFile, IndexMetadata
from lancelake.format.manifest import Manifest, WriterVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """A manifest and the index entries that belong to it."""

    manifest: Manifest
    indices: tuple[IndexMetadata, ...] = ()

    @property
    def fragments(self) -> FragmentList:
        """Fragments of the version, decoded on access."""
        return FragmentList.of(self.manifest.fragments)

    def fragments_by_id(self) -> Mapping[FragmentId, Fragment]:
        """Return the fragments by id."""
        return self.fragments.by_id()

    def fragment_ids(self) -> frozenset[FragmentId]:
        """Return the ids of all fragments."""
        return frozenset(self.fragments.ids)

    def index_named(self, name: str) -> IndexMetadata | None:
        """Return the first entry of this name."""
        return next((i for i in self.indices if i.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrections:
    """Corrected entries, and the lowest row id that no row has.

    An index entry with None is removed. Rows and their data files stay unchanged, and no row
    counts as updated.
    """

    fragments: tuple[Fragment, ...] = ()
    indices: FrozenMap[UUID, IndexMetadata | None] = field(default_factory=FrozenMap)
    next_row_id: int = 0

    def applied(self, state: TableState) -> TableState:
        """Return the corrected version."""
        manifest = state.manifest
        if self.fragments:
            manifest = replace(manifest, fragments=state.fragments.exchanged(self.fragments))
        if self.next_row_id > manifest.next_row_id:
            manifest = replace(manifest, next_row_id=self.next_row_id)
        indices = tuple(self._entries(state.indices)) if self.indices else state.indices
        if manifest is state.manifest and indices is state.indices:
            return state
        return replace(state, manifest=manifest, indices=indices)

    def _entries(self, indices: tuple[IndexMetadata, ...]) -> Iterator[IndexMetadata]:
        seen: set[UUID] = set()
        for index in indices:
            if index.uuid not in self.indices:
                yield index
            elif index.uuid not in seen:
                seen.add(index.uuid)
                right = self.indices[index.uuid]
                if right is not None:
                    yield right


NO_CORRECTIONS = Corrections()


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


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionChoices:
    """Choices for a version that its transaction does not record."""

    enable_stable_row_ids: bool | None = None
    """For a new table, by default without; an existing one keeps what it has."""

    data_version: FileVersion | None = None
    """File version of a new table, or of one that is overwritten."""

    fragment_reuse: IndexMetadata | None = None
    """Where a compaction that defers the remapping of indices records the moved rows."""

    corrections: Corrections = NO_CORRECTIONS
    """Changes that a repair makes to the version before the transaction is applied."""


NO_CHOICES = VersionChoices()


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """Time, author, and choices that a transaction does not record.

    `facts` is what was read from files to complete versions of old writers. `version` is given
    only for a version outside the main line.
    """

    timestamp_ns: int
    writer: WriterVersion
    choices: VersionChoices = NO_CHOICES
    has_transaction_file: bool = True
    facts: Facts = NOTHING_KNOWN
    version: Version | None = None
