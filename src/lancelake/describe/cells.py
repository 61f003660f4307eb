"""Values of rows as text and JSON, cut to what a page can show."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.describe.documents import Json

_HALF_DIGITS = 4
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def to_json(value: pa.Scalar, most_items: int | None = None) -> Json:
    """Return a JSON-compatible value: bytes as base64, times as ISO 8601, decimals as text.

    A map becomes a list of objects with `key` and `value`; NaN and infinities become text. A list
    of more than `most_items` items ends with a text that counts the others.
    """
    value = unwrap(value)
    dtype = value.type
    if not value.is_valid:
        return None
    if pa.types.is_struct(dtype):
        members = ((dtype.field(i).name, value[i]) for i in range(dtype.num_fields))
        return {name: to_json(member, most_items) for name, member in members}
    if pa.types.is_nested(dtype):
        return _items(value, most_items)
    if is_bytes(dtype):
        return base64.b64encode(value.as_py()).decode()
    plain = plain_value(value)
    if isinstance(plain, float) and not math.isfinite(plain):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(plain, "NaN")
    return plain


def _items(value: pa.Scalar, most: int | None) -> list[Json]:
    items = value.values
    first = items if most is None else items[:most]
    values: list[Json]
    if pa.types.is_map(value.type):
        values = [{"key": to_json(e[0], most), "value": to_json(e[1], most)} for e in first]
    else:
        values = [to_json(item, most) for item in first]
    if len(first) < len(items):
        values.append(f"… {len(items) - len(first):,} more")
    return values


def unwrap(value: pa.Scalar) -> pa.Scalar:
    """Return the storage or value type of extension and dictionary types."""
    while isinstance(value, pa.ExtensionScalar | pa.DictionaryScalar):
        storage = value.value
        if storage is None:
            return pa.scalar(None)
        value = storage
    return value


def plain_value(value: pa.Scalar) -> bool | int | float | str:
    """Return a value that is not null, nested or bytes: times and decimals as text."""
    dtype = value.type
    if pa.types.is_duration(dtype):
        return f"PT{_decimal(value.value, _PER_SECOND[dtype.unit])}S"
    if pa.types.is_timestamp(dtype):
        return _timestamp(value.cast(pa.string()).as_py())
    if pa.types.is_temporal(dtype):
        return str(value.cast(pa.string()).as_py())
    if pa.types.is_decimal(dtype):
        return str(value.as_py())
    plain: bool | int | float | str = value.as_py()
    return plain


def text_of(value: pa.Scalar) -> str:
    """Return a value with all its digits, and no more than its type has."""
    dtype = value.type
    if pa.types.is_float32(dtype):
        text = str(value.cast(pa.string()).as_py())
        return f"{text}.0" if text.lstrip("-").isdigit() else text
    if pa.types.is_float16(dtype):
        return f"{value.as_py():.{_HALF_DIGITS}g}"
    plain = plain_value(value)
    return str(plain).lower() if isinstance(plain, bool) else str(plain)


def is_bytes(dtype: pa.DataType) -> bool:
    """Whether values of this type are bytes."""
    types = pa.types
    return bool(
        types.is_binary(dtype) or types.is_large_binary(dtype) or types.is_fixed_size_binary(dtype)
    )


def is_number(dtype: pa.DataType) -> bool:
    """Whether values of this type are integers or floating-point numbers."""
    return bool(pa.types.is_integer(dtype) or pa.types.is_floating(dtype))


def _timestamp(text: str) -> str:
    """Convert Arrow's time format to ISO 8601."""
    date, _, rest = text.partition(" ")
    zone = rest[-5:]
    if zone[:1] in ("+", "-"):
        rest = f"{rest[:-5]}{zone[:3]}:{zone[3:]}"
    return f"{date}T{rest}"


def _decimal(count: int, per_second: int) -> str:
    sign = "-" if count < 0 else ""
    whole, rest = divmod(abs(count), per_second)
    digits = len(str(per_second)) - 1
    fraction = f".{rest:0{digits}d}".rstrip("0") if rest else ""
    return f"{sign}{whole}{fraction}"


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
        [_blob_cell(value) if name in blobs else cell(value) for value in column]
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
    value = unwrap(value)
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
        return {"kind": "number", "text": text_of(value)}
    return {"kind": "text", **_cut(text_of(value), _TEXT_MOST)}


def whole_text(value: pa.Scalar, most: int) -> Json:
    """Return a value as text, up to a number of characters."""
    value = unwrap(value)
    if not value.is_valid:
        return _cut("null", most)
    if pa.types.is_nested(value.type):
        items = max(_NESTED_ITEMS, most // _SHORT_LIST)
        return _cut(json.dumps(to_json(value, items), ensure_ascii=False, indent=2), most)
    if is_bytes(value.type):
        return _cut(value.as_py()[:most].hex(" "), most)
    return _cut(text_of(value), most)


def _include_images(columns: list[list[Json]], table: pa.Table) -> None:
    left = _IMAGES_MOST
    for cells, values in zip(columns, table.columns, strict=True):
        for cell, value in zip(cells, values, strict=True):
            is_image = cell is not None and cell["kind"] == "image"
            if is_image and cell["size_bytes"] <= min(_IMAGE_MOST, left):
                left -= cell["size_bytes"]
                cell["base64"] = to_json(value)


def _column(field: pa.Field) -> Json:
    is_right = is_number(field.type) or pa.types.is_decimal(field.type)
    return {"name": field.name, "type": str(field.type), "is_number": bool(is_right)}


def _cut(text: str, most: int) -> Json:
    return {"text": text[:most], "length": len(text), "is_cut": len(text) > most}


def _bytes(value: pa.Scalar) -> Json:
    buffer = value.as_buffer()
    first = buffer[:_HEX_BYTES].to_pybytes()
    media_type = image_type(first)
    if media_type is not None:
        return {"kind": "image", "media_type": media_type, "size_bytes": buffer.size}
    return {"kind": "bytes", "size_bytes": buffer.size, "hex": first.hex(" ")}


def _blob_cell(value: pa.Scalar) -> Json:
    value = unwrap(value)
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
        "values": [_round(item) for item in whole[:_VECTOR_ITEMS].tolist()],
        "min": float(finite.min()) if len(finite) else None,
        "max": float(finite.max()) if len(finite) else None,
        "norm": _round(float(np.linalg.norm(finite))),
    }


def _round(item: float) -> float | None:
    return float(f"{item:.{_VECTOR_DIGITS}g}") if math.isfinite(item) else None


class FirstRows:
    """The first rows of a stream, or all of them; `has_more` is whether more followed."""

    def __init__(self, batches: Iterable[pa.RecordBatch], most: int | None) -> None:
        self._batches = batches
        self._left = most
        self.has_more = False

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            if self._left is None:
                yield batch
                continue
            if batch.num_rows > self._left:
                self.has_more = True
                yield batch.slice(0, self._left)
                return
            self._left -= batch.num_rows
            yield batch

    def table(self, schema: pa.Schema) -> pa.Table:
        """Read the rows."""
        return pa.Table.from_batches(self, schema)
