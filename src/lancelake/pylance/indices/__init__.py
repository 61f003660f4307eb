"""Values that describe indices, and the models of vector indices, as in pylance."""

from enum import StrEnum

from lancelake.pylance._dataset.index_values import (
    IndexConfig,
    IndexDescription,
    IndexSegmentDescription,
    SupportedDistributedIndices,
)
from lancelake.pylance._values.vector_models import IvfModel, PqModel
from lancelake.pylance.indices.builder import IndicesBuilder

__all__ = [
    "IndexConfig",
    "IndexDescription",
    "IndexFileVersion",
    "IndexSegmentDescription",
    "IndicesBuilder",
    "IvfModel",
    "PqModel",
    "SupportedDistributedIndices",
]


class IndexFileVersion(StrEnum):
    """Version of the files of a vector index."""

    LEGACY = "Legacy"
    V3 = "V3"
