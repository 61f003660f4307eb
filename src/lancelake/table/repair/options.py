"""Options of a repair; lossy repairs are disabled by default."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairOptions:
    """Repairs to perform beyond the lossless ones."""

    data: bool = False
    """Read every value, to find wrong row counts and unreadable files."""

    notes: bool = False
    """Also repair harmless findings."""

    drop_lost: bool = False
    """Drop fragments with missing or unreadable files, with all their rows."""

    replace_invalid_utf8: bool = False
    """Replace invalid UTF-8 bytes of strings with U+FFFD; every value is read."""

    rebuild_indices: bool = False
    """Build indices again of which a segment was dropped; their columns are read for it."""

    new_row_ids: bool = False
    """Assign new row ids to rows with lost ids; references to the old ids become invalid."""

    remove_refs: bool = False
    """Delete tags and branches that refer to nothing."""

    rename_manifests: bool = False
    """Rename all manifests to one naming scheme; there must be no other writers in the meantime."""

    @property
    def reads_data(self) -> bool:
        """Whether every value is read."""
        return self.data or self.replace_invalid_utf8
