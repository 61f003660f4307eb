"""Values that describe indices, as in pylance."""

from lancelake.pylance._dataset.index_values import (
    IndexConfig,
    IndexDescription,
    IndexSegmentDescription,
)

__all__ = ["IndexConfig", "IndexDescription", "IndexSegmentDescription"]
