"""Values that describe indices, as in pylance."""

from lancelake.pylance._dataset.index_values import (
    IndexConfig,
    IndexDescription,
    IndexSegmentDescription,
)
from lancelake.pylance._dataset.vector_models import IvfModel

__all__ = ["IndexConfig", "IndexDescription", "IndexSegmentDescription", "IvfModel"]
