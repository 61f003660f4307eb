"""Names that programs import from pylance's compiled module, `lance.lance`."""

from lancelake.pylance._dataset.description.facts import manifest_needs_migration
from lancelake.pylance._dataset.scanning.scan_statistics import ScanStatistics
from lancelake.pylance._dataset.state.session import Session
from lancelake.pylance._values import rotation_models as indices
from lancelake.pylance._values.bitmap import Bitmap
from lancelake.pylance._values.counters import bytes_read_counter, iops_counter
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
