"""Names that programs import from pylance's compiled module, `lance.lance`."""

from lancelake.pylance._dataset.description import manifest_needs_migration
from lancelake.pylance._dataset.scanner import ScanStatistics
from lancelake.pylance._dataset.state import Session
from lancelake.pylance._values import vector_models as indices
from lancelake.pylance._values.opened import bytes_read_counter, iops_counter
from lancelake.pylance._values.row_sequences import Bitmap
from lancelake.pylance.optimize import (
    Compaction,
    CompactionMetrics,
    CompactionPlan,
    CompactionTask,
    RewriteResult,
)
from lancelake.pylance.schema import LanceSchema

__all__ = [
    "Bitmap",
    "Compaction",
    "CompactionMetrics",
    "CompactionPlan",
    "CompactionTask",
    "LanceSchema",
    "RewriteResult",
    "ScanStatistics",
    "Session",
    "bytes_read_counter",
    "indices",
    "iops_counter",
    "manifest_needs_migration",
]
