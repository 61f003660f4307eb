"""Advice on findings that a repair cannot, or may not, fix."""

from __future__ import annotations

from lancelake.table.check.finding import Finding

_COPY_OR_BACK = "Restore the file from a backup, or go back with --to-healthy"
_LOST_FILE = f"{_COPY_OR_BACK}; or drop the rows with --drop-lost."
_LOST_IDS = "Assign new row ids with --new-row-ids; references to the old ones become invalid."
_BACK = "Go back to the newest consistent version with --to-healthy."
_REFS = "Move it to another version, or delete it with --remove-refs."

_ADVICE = {
    "data-file-missing": _LOST_FILE,
    "data-file-size": _LOST_FILE,
    "data-file-damaged": _LOST_FILE,
    "data-file-version": _LOST_FILE,
    "file-unreadable": _LOST_FILE,
    "file-escapes": _LOST_FILE,
    "base-undeclared": "Register the base path again; or drop the rows with --drop-lost.",
    "file-columns": _LOST_FILE,
    "file-column-twice": _LOST_FILE,
    "file-field-unknown": _LOST_FILE,
    "file-version-unknown": _LOST_FILE,
    "column-unreadable": _LOST_FILE,
    "row-count": _LOST_FILE,
    "text-not-utf8": "Replace the invalid bytes with --replace-invalid-utf8; all other values "
    "remain unchanged.",
    "deletion-file-missing": f"{_COPY_OR_BACK}: without it, deleted rows cannot be identified.",
    "deletion-file-damaged": f"{_COPY_OR_BACK}: without it, deleted rows cannot be identified.",
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
    "type-unknown": "Use a newer release; or go back with --to-healthy.",
    "null-forbidden": "Fill the nulls with `lancelake update`, or write the rows again.",
    "manifest-name": "Rename the file to match the manifest, or restore it from a backup.",
    "tag-target-missing": _REFS,
    "branch-root-missing": "Restore its folder, or delete the branch with --remove-refs.",
    "ref-damaged": "Write the document again; a tag, or a branch without versions, can be "
    "deleted with --remove-refs.",
    "branch-parent-missing": "Rows that the branch shares with it may be lost; clone the branch.",
    "branch-fork-missing": "Clone the branch before files that it shares are cleaned up.",
    "branch-zombie": "Delete its remaining files with `lancelake branch delete`.",
    "naming-mixed": "Stop all writers, then use --rename-manifests.",
    "versions-missing": "Only these versions are lost; later ones are complete.",
    "unknown-writer-flags": "Use the release that created the table.",
    "version-unsupported": "Use a newer release.",
}


def advice(finding: Finding) -> str:
    """Say what to do about a finding."""
    return _ADVICE.get(finding.code) or finding.hint or "Restore a consistent version."
