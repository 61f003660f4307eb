"""What does a version say wrongly, and what is right? Set right before the next change is made."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lancelake.format.fragment import Fragment
from lancelake.txn.state import TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class Mending:
    """Entries of fragments as they should be, and the least row id that no row has.

    Rows, and the files they lie in, stay as they are: no row counts as changed.
    """

    fragments: tuple[Fragment, ...] = ()
    next_row_id: int = 0

    def applied(self, state: TableState) -> TableState:
        """Return the version as it should have been written."""
        manifest = state.manifest
        if not self.fragments and self.next_row_id <= manifest.next_row_id:
            return state
        return replace(
            state,
            manifest=replace(
                manifest,
                fragments=state.fragments.exchanged(self.fragments),
                next_row_id=max(self.next_row_id, manifest.next_row_id),
            ),
        )


NOTHING_TO_MEND = Mending()
