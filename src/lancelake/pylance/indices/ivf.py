"""The partitions of a vector index, under pylance's name."""

from lancelake.pylance._values.vector_models import IvfModel

__all__ = ["IvfModel"]
