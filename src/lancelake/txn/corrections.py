"""Corrections of a version's entries, applied by a repair before the next change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from uuid import UUID

from lancelake.format.fragment import Fragment
from lancelake.format.frozen import FrozenMap
from lancelake.format.index_meta import IndexMetadata
from lancelake.txn.state import TableState


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
