"""Training of the models of vector indices, under pylance's name."""

from lancelake.pylance._dataset.indices.index_values import IndexConfig
from lancelake.pylance._dataset.indices.indices_builder import IndicesBuilder
from lancelake.pylance._values.vector_models import IvfModel, PqModel

__all__ = ["IndexConfig", "IndicesBuilder", "IvfModel", "PqModel"]
