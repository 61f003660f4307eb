"""Values of rows as documents of bounded size, for a display that knows their kinds."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.table.describe.arrow_json import is_bytes, is_number, opened, shown, to_json
from lancelake.table.describe.documents import Json

_TEXT_MOST = 600
_NESTED_MOST = 600
_NESTED_ITEMS = 40
_VECTOR_ITEMS = 768
_VECTOR_DIGITS = 4
_HEX_BYTES = 16
_IMAGE_MOST = 64 << 10
_IMAGES_MOST = 2 << 20
_SHORT_LIST = 8
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
SIGNATURE_BYTES = 12
"""Number of bytes from which an image is recognised."""


def image_type(data: bytes) -> str | None:
    """Return the media type of a PNG, JPEG, GIF or WebP image; None for any other content."""
    for signature, media_type in _SIGNATURES:
        if data.startswith(signature):
            return media_type
    is_webp = data[:4] == b"RIFF" and data[8:SIGNATURE_BYTES] == b"WEBP"
    return "image/webp" if is_webp else None


def cells_document(table: pa.Table, snapshot: Snapshot, *, has_images: bool = False) -> Json:
    """Return rows as columns and cells.

    A cell is null, or an object with a `kind`: text, number, vector, nested, image, bytes or blob.
    Cells show the beginning of long values and state the length of the whole. With `has_images`,
    small images are included as base64, as long as all of them fit a limit.
    """
    blobs = {f.name for f in snapshot.manifest.schema.fields if f.is_blob_v1 or f.is_blob_v2}
    columns = [
        [_blob(value) if name in blobs else cell(value) for value in column]
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    if has_images:
        _include_images(columns, table)
    return {
        "columns": [_column(field) for field in table.schema],
        "rows": [list(row) for row in zip(*columns, strict=True)],
    }


def cell(value: pa.Scalar) -> Json:
    """Return a value as a cell."""
    value = opened(value)
    if not value.is_valid:
        return None
    dtype = value.type
    if is_bytes(dtype):
        return _bytes(value)
    if _is_vector(value):
        return _vector(value)
    if pa.types.is_nested(dtype):
        text = json.dumps(to_json(value, _NESTED_ITEMS), ensure_ascii=False)
        return {"kind": "nested", **_cut(text, _NESTED_MOST)}
    if is_number(dtype) or pa.types.is_decimal(dtype) or pa.types.is_boolean(dtype):
        # As text, because numbers of JSON cannot have 64 bits.
        return {"kind": "number", "text": shown(value)}
    return {"kind": "text", **_cut(shown(value), _TEXT_MOST)}


def whole_text(value: pa.Scalar, most: int) -> Json:
    """Return a value as text, up to a number of characters."""
    value = opened(value)
    if not value.is_valid:
        return _cut("null", most)
    if pa.types.is_nested(value.type):
        items = max(_NESTED_ITEMS, most // _SHORT_LIST)
        return _cut(json.dumps(to_json(value, items), ensure_ascii=False, indent=2), most)
    if is_bytes(value.type):
        return _cut(value.as_py()[:most].hex(" "), most)
    return _cut(shown(value), most)


def _include_images(columns: list[list[Json]], table: pa.Table) -> None:
    left = _IMAGES_MOST
    for cells, values in zip(columns, table.columns, strict=True):
        for found, value in zip(cells, values, strict=True):
            is_image = found is not None and found["kind"] == "image"
            if is_image and found["size_bytes"] <= min(_IMAGE_MOST, left):
                left -= found["size_bytes"]
                found["base64"] = to_json(value)


def _column(field: pa.Field) -> Json:
    is_right = is_number(field.type) or pa.types.is_decimal(field.type)
    return {"name": field.name, "type": str(field.type), "is_number": bool(is_right)}


def _cut(text: str, most: int) -> Json:
    return {"text": text[:most], "length": len(text), "is_cut": len(text) > most}


def _bytes(value: pa.Scalar) -> Json:
    buffer = value.as_buffer()
    first = buffer[:_HEX_BYTES].to_pybytes()
    found = image_type(first)
    if found is not None:
        return {"kind": "image", "media_type": found, "size_bytes": buffer.size}
    return {"kind": "bytes", "size_bytes": buffer.size, "hex": first.hex(" ")}


def _blob(value: pa.Scalar) -> Json:
    value = opened(value)
    if not value.is_valid:
        return None
    size = value["size"].as_py() if "size" in value else None
    return {"kind": "blob", "size_bytes": size}


def _is_vector(value: pa.Scalar) -> bool:
    """Whether a value is shown as a vector: a list of floats, or of many numbers."""
    dtype = value.type
    is_list = pa.types.is_list(dtype) or pa.types.is_large_list(dtype)
    if not (is_list or pa.types.is_fixed_size_list(dtype)) or not is_number(dtype.value_type):
        return False
    return bool(pa.types.is_floating(dtype.value_type)) or len(value.values) > _SHORT_LIST


def _vector(value: pa.Scalar) -> Json:
    items = value.values
    whole = items.cast(pa.float64()).to_numpy(zero_copy_only=False)
    finite = whole[np.isfinite(whole)]
    return {
        "kind": "vector",
        "length": len(items),
        "values": [_rounded(item) for item in whole[:_VECTOR_ITEMS].tolist()],
        "min": float(finite.min()) if len(finite) else None,
        "max": float(finite.max()) if len(finite) else None,
        "norm": _rounded(float(np.linalg.norm(finite))),
    }


def _rounded(item: float) -> float | None:
    return float(f"{item:.{_VECTOR_DIGITS}g}") if math.isfinite(item) else None
