"""`Bitmap`: a set of fragment ids, as in pylance."""

from lancelake.pylance._values.row_sequences import Bitmap

__all__ = ["Bitmap"]
