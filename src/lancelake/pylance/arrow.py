"""Arrow types for images and floats of 16 bits, as in pylance, loaded when they are used."""

from __future__ import annotations

from typing import Any

from lancelake.data.codec.official import arrow_member

_NAMES = [
    "BFloat16",
    "BFloat16Array",
    "BFloat16Type",
    "EncodedImageArray",
    "EncodedImageScalar",
    "EncodedImageType",
    "FixedShapeImageTensorArray",
    "FixedShapeImageTensorScalar",
    "FixedShapeImageTensorType",
    "ImageArray",
    "ImageScalar",
    "ImageURIArray",
    "ImageURIScalar",
    "ImageURIType",
    "PandasBFloat16Array",
    "bfloat16_array",
    "cast",
]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return arrow_member(name)


def __dir__() -> list[str]:
    return _NAMES
