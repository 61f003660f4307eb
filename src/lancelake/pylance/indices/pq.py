"""The codebook of a vector index, under pylance's name."""

from lancelake.pylance._values.vector_models import PqModel

__all__ = ["PqModel"]
