"""Values of upkeep: options and reports of compaction, cleanup and optimization."""

from typing import TYPE_CHECKING

from lancelake.core.values import load_on_use

if TYPE_CHECKING:
    from lancelake.describe.documents import optimize_document
    from lancelake.maintenance.check.finding import Finding, Severity
    from lancelake.maintenance.check.finding import Progress as CheckProgress
    from lancelake.maintenance.cleanup.plan import (
        CleanupPlan,
        CleanupPolicy,
        PlannedFile,
        PlannedVersion,
        Reason,
        Totals,
    )
    from lancelake.maintenance.cleanup.run import CleanupReport
    from lancelake.maintenance.compact import options, plan
    from lancelake.maintenance.compact.plan import (
        CLUSTER_BY,
        RewritePlan,
        cluster_paths,
        cluster_text,
        ensure_not_clustering,
    )
    from lancelake.maintenance.compact.run import (
        Compacted,
        CompactionCounts,
        CompactionRun,
        Rewritten,
        rewritten,
    )
    from lancelake.maintenance.optimize import (
        OptimizeRun,
        OptimizeSummary,
        ScalarIndexMaintenance,
        SegmentMerging,
    )
    from lancelake.maintenance.reachable import FileKind
    from lancelake.maintenance.repair import (
        HealthyVersion,
        Repaired,
        RepairOptions,
        RepairPlan,
        restore_healthy,
    )
    from lancelake.maintenance.repair import apply as apply_repairs
else:
    __getattr__ = load_on_use(__name__)
