"""What may a repair do? What costs something is done only when it is asked for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What a caller asks for beyond what costs nothing."""

    data: bool = False
    """Read every value, so that wrong row counts and unreadable files are found."""

    notes: bool = False
    """Mend also what is harmless."""

    drop_lost: bool = False
    """Give up fragments of which a file is gone or cannot be read, with all their rows."""

    replace_invalid_utf8: bool = False
    """Put U+FFFD in place of bytes of strings that are not UTF-8; every value is read for it."""

    rebuild_indices: bool = False
    """Build indices again of which a segment was dropped; their columns are read for it."""

    new_row_ids: bool = False
    """Give fresh ids to rows whose ids are lost; what remembers the old ones finds them no more."""

    remove_refs: bool = False
    """Remove tags and branches that lead nowhere."""

    rename_manifests: bool = False
    """Name all manifests by one scheme; nobody may commit meanwhile."""

    @property
    def reads_data(self) -> bool:
        """Whether every value is read."""
        return self.data or self.replace_invalid_utf8
