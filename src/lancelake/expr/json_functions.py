"""JSON functions of Lance, registered with DataFusion."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lancelake.errors import InvalidExpressionError
from lancelake.format.json_path import parse_path, select
from lancelake.format.jsonb_node import JsonKind, JsonNode

if TYPE_CHECKING:
    from datafusion import ScalarUDF, SessionContext

_INT = re.compile(r"[+-]?\d+")
_FLOAT = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf|infinity|nan)", re.IGNORECASE)
_PLACE = re.compile(r"\+?\d+")
_TRUTHS = {"true": True, "yes": True, "false": False, "no": False}
_INT_BITS = 63
_TYPED = pa.struct([("value", pa.large_binary()), pa.field("type_tag", pa.uint8(), nullable=False)])
_TAGS = {
    JsonKind.NULL: 0,
    JsonKind.FALSE: 1,
    JsonKind.TRUE: 1,
    JsonKind.STRING: 4,
    JsonKind.ARRAY: 5,
    JsonKind.OBJECT: 6,
}
_INT_TAG, _FLOAT_TAG = 2, 3

Compute = Callable[..., Any]


def register_json_functions(context: SessionContext) -> None:
    """Register the functions with a context."""
    for function in _functions():
        context.register_udf(function)


@functools.cache
def _functions() -> tuple[ScalarUDF, ...]:
    text, number = pa.string(), pa.int64()
    return (
        _function("json_extract", _extract, text),
        _function("json_exists", _exists, pa.bool_()),
        _function("json_get", _get, pa.large_binary()),
        _function("json_get_string", _converted(_to_string), text),
        _function("json_get_int", _converted(_to_int), number),
        _function("json_get_float", _converted(_to_float), pa.float64()),
        _function("json_get_bool", _converted(_to_bool), pa.bool_()),
        _function("json_array_length", _length, number),
        _function("json_array_contains", _contains, pa.bool_(), arguments=2),
        _function("json_extract_with_type", _typed, _TYPED, null={"value": None, "type_tag": 0}),
    )


def _function(
    name: str, compute: Compute, returns: pa.DataType, *, arguments: int = 1, null: Any = None
) -> ScalarUDF:
    """Create a function of a document and strings; null where one of them is null."""
    from datafusion import udf  # noqa: PLC0415  # loads pandas, too

    def run(documents: pa.Array, *texts: pa.Array) -> pa.Array:
        rows = zip(documents.to_pylist(), *(part.to_pylist() for part in texts), strict=True)
        values = [null if None in row else compute(JsonNode.root(row[0]), *row[1:]) for row in rows]
        return pa.array(values, returns)

    inputs = [pa.large_binary(), *[pa.string()] * arguments]
    return udf(run, inputs, returns, "immutable", name)


def _extract(document: JsonNode, path: str) -> str | None:
    found = select(document, parse_path(path))
    texts = [node.text() for node in found]
    if len(texts) == 1:
        return texts[0]
    return f"[{','.join(texts)}]" if texts else None


def _exists(document: JsonNode, path: str) -> bool:
    return bool(select(document, parse_path(path)))


def _length(document: JsonNode, path: str) -> int | None:
    found = select(document, parse_path(path))
    return len(found[0].items()) if found else None


def _contains(document: JsonNode, path: str, wanted: str) -> bool:
    found = select(document, parse_path(path))
    return any(_is(item, wanted) for node in found for item in node.items())


def _is(item: JsonNode, wanted: str) -> bool:
    if item.kind is JsonKind.STRING and item.string() == wanted:
        return True
    return item.text() == wanted


def _typed(document: JsonNode, path: str) -> dict[str, Any]:
    text = _extract(document, path)
    if text is None:
        return {"value": None, "type_tag": 0}
    node = JsonNode.root(text.encode())
    tag = _TAGS.get(node.kind, _FLOAT_TAG)
    if node.kind is JsonKind.NUMBER and _INT.fullmatch(text) and _fits(int(text)):
        tag = _INT_TAG
    return {"value": node.stored(), "type_tag": tag}


def _child(document: JsonNode, key: str) -> JsonNode | None:
    """Return a member by name, or an item by position."""
    if document.kind is JsonKind.OBJECT:
        return document.members().get(key)
    items = document.items()
    if not items or not _PLACE.fullmatch(key):
        return None
    place = int(key)
    return items[place] if place < len(items) else None


def _get(document: JsonNode, key: str) -> bytes | None:
    found = _child(document, key)
    return None if found is None else found.stored()


def _converted(convert: Callable[[JsonNode], Any]) -> Compute:
    def compute(document: JsonNode, key: str) -> Any:
        found = _child(document, key)
        if found is None or found.kind is JsonKind.NULL:
            return None
        return convert(found)

    return compute


def _to_string(node: JsonNode) -> str:
    match node.kind:
        case JsonKind.STRING:
            return node.string()
        case JsonKind.ARRAY | JsonKind.OBJECT:
            raise _no_conversion(node, "string")
        case _:
            return node.text()


def _to_int(node: JsonNode) -> int:
    value = _number(node, "integer")
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _no_conversion(node, "integer")
        value = _rounded(value)
    if not _fits(value):
        raise _no_conversion(node, "integer")
    return value


def _to_float(node: JsonNode) -> float:
    return float(_number(node, "float"))


def _to_bool(node: JsonNode) -> bool:
    if node.kind in (JsonKind.TRUE, JsonKind.FALSE):
        return node.kind is JsonKind.TRUE
    truth = _TRUTHS.get(node.string().lower()) if node.kind is JsonKind.STRING else None
    if truth is None:
        raise _no_conversion(node, "boolean")
    return truth


def _number(node: JsonNode, target: str) -> int | float:
    match node.kind:
        case JsonKind.TRUE | JsonKind.FALSE:
            return int(node.kind is JsonKind.TRUE)
        case JsonKind.NUMBER:
            text = node.text()
        case JsonKind.STRING:
            text = node.string()
        case _:
            raise _no_conversion(node, target)
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    raise _no_conversion(node, target)


def _rounded(value: float) -> int:
    """Round halves away from zero."""
    whole = math.floor(abs(value))
    whole += abs(value) - whole >= 0.5  # noqa: PLR2004  # a half
    return -whole if value < 0 else whole


def _fits(value: int) -> bool:
    return -(1 << _INT_BITS) <= value < 1 << _INT_BITS


def _no_conversion(node: JsonNode, target: str) -> InvalidExpressionError:
    msg = f"JSON value {node.text()} cannot be converted to {target}"
    return InvalidExpressionError(msg, text=node.text())
