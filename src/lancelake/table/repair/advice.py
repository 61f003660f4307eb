"""What is to be done about what a repair cannot, or may not, set right?"""

from __future__ import annotations

from lancelake.table.check.finding import Finding

_COPY_OR_BACK = "Bring the file back from a copy, or go back with --to-healthy"
_LOST_FILE = f"{_COPY_OR_BACK}; or give up the rows with --drop-lost."
_LOST_IDS = "Give the rows fresh ids with --new-row-ids: what remembers the old ones loses them."
_BACK = "Go back to the newest version that is in order with --to-healthy."
_REFS = "Let it name another version, or remove it with --remove-refs."

_ADVICE = {
    "data-file-missing": _LOST_FILE,
    "data-file-size": _LOST_FILE,
    "data-file-damaged": _LOST_FILE,
    "data-file-version": _LOST_FILE,
    "file-unreadable": _LOST_FILE,
    "file-escapes": _LOST_FILE,
    "base-undeclared": "Declare the base path again; or give up the rows with --drop-lost.",
    "file-columns": _LOST_FILE,
    "file-column-twice": _LOST_FILE,
    "file-field-unknown": _LOST_FILE,
    "file-version-unknown": _LOST_FILE,
    "column-unreadable": _LOST_FILE,
    "row-count": _LOST_FILE,
    "text-not-utf8": "Replace the invalid bytes with --replace-invalid-utf8: all other values, "
    "and the rows, stay as they are.",
    "deletion-file-missing": f"{_COPY_OR_BACK}: which rows were deleted is not known without it.",
    "deletion-file-damaged": f"{_COPY_OR_BACK}: which rows were deleted is not known without it.",
    "row-ids-damaged": _LOST_IDS,
    "row-ids-length": _LOST_IDS,
    "row-ids-twice": _LOST_IDS,
    "manifest-damaged": _BACK,
    "index-section-damaged": _BACK,
    "fragment-damaged": _BACK,
    "fragment-id-twice": _BACK,
    "field-id-twice": _BACK,
    "field-id-negative": _BACK,
    "column-name-twice": _BACK,
    "column-name-dot": _BACK,
    "type-unknown": "Upgrade; or go back with --to-healthy.",
    "null-forbidden": "Fill the nulls with `lancelake update`, or write the rows again.",
    "manifest-name": "Rename the file to what the manifest says, or restore it from a copy.",
    "tag-target-missing": _REFS,
    "branch-root-missing": "Bring its folder back, or remove the branch with --remove-refs.",
    "ref-damaged": "Write the document again; a tag, or a branch without versions, is removed "
    "with --remove-refs.",
    "branch-parent-missing": "Rows that the branch shares with it may be gone; clone the branch.",
    "branch-fork-missing": "Clone the branch before files that it shares are cleaned up.",
    "branch-zombie": "Remove what is left of it with `lancelake branch delete`.",
    "naming-mixed": "Stop all writers, then use --rename-manifests.",
    "versions-missing": "Nothing is lost but these versions; later ones are complete.",
    "unknown-writer-flags": "Use the release that made the table.",
    "version-unsupported": "Use a newer release.",
}


def advice(finding: Finding) -> str:
    """Say what to do about a finding."""
    return _ADVICE.get(finding.code) or finding.hint or "Restore a version that is in order."
