"""Table maintenance: compaction, index updates and cleanup, run when worthwhile."""

from lancelake.table.optimize.run import OptimizeRun, OptimizeSummary, optimize
from lancelake.table.optimize.settings import OptimizeSettings, from_config

__all__ = ["OptimizeRun", "OptimizeSettings", "OptimizeSummary", "from_config", "optimize"]
