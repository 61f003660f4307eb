"""Keep a table in shape: compaction, indices and cleanup, when they are worth it."""

from lancelake.table.optimize.run import OptimizeRun, OptimizeSummary, optimize
from lancelake.table.optimize.settings import OptimizeSettings, from_config

__all__ = ["OptimizeRun", "OptimizeSettings", "OptimizeSummary", "from_config", "optimize"]
