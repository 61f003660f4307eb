"""`Bitmap`: a set of fragment ids, as in pylance."""

from lancelake.pylance._values.bitmap import Bitmap

__all__ = ["Bitmap"]
