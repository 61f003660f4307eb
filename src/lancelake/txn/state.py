"""Table state: the manifest and index entries of one version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lancelake.format.fragment import Fragment
from lancelake.format.fragment_list import FragmentList
from lancelake.format.ids import FragmentId
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.manifest import Manifest


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
