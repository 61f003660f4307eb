"""Summaries of maintenance as JSON documents."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from lancelake.table.optimize import OptimizeSummary


def optimize_document(summary: OptimizeSummary) -> dict[str, Any]:
    """Return what `optimize` did, or would do, and why steps were skipped."""
    compaction, cleanup = summary.compaction, summary.cleanup
    removed = None
    if cleanup is not None:
        removed = {
            "versions": list(cleanup.versions),
            "files": cleanup.files_removed,
            "bytes": cleanup.bytes_removed,
        }
    return {
        "dry_run": summary.is_dry_run,
        "compaction": None if compaction is None else asdict(compaction),
        "indices": list(summary.indices),
        "cleanup": removed,
        "skipped": list(summary.skipped),
        "conflict": summary.conflict,
    }
