"""JSON functions of SQL, and the paths they take.

A path is `$` and steps: `.name`, `."name"`, `["name"]`, `.*`, `.**`, `[0]`, `[last - 1]`,
`[0 to 2]`, `[0, 2]`, `[*]`. The `$` can be left out before a name.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, assert_never

import pyarrow as pa

from lancelake.errors import InvalidExpressionError
from lancelake.format.jsonb import JsonKind, JsonNode

if TYPE_CHECKING:
    from datafusion import ScalarUDF, SessionContext

_PATHS = 256
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_STEP = re.compile(
    rf"\s*(?:[.:](?P<name>\w+)|[.:](?P<quoted>{_QUOTED})|[.:](?P<deep>\*\*)|[.:](?P<members>\*)"
    rf"|\[\s*(?P<key>{_QUOTED})\s*\]|\[\s*(?P<every>\*)\s*\]|\[(?P<items>[^\]]*)\])"
)
_FIRST_NAME = re.compile(r"\s*\w+")
_PATH_STEP = r"(last(?:\s*-\s*\d+)?|-?\d+)"
_ITEM = re.compile(rf"\s*{_PATH_STEP}(?:\s+to\s+{_PATH_STEP})?\s*")


@dataclass(frozen=True, slots=True)
class Member:
    """The member of this name."""

    name: str


@dataclass(frozen=True, slots=True)
class Items:
    """Items of an array by position, in ranges with both ends included."""

    spans: tuple[tuple[Place, Place], ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A position in an array, from the first or, if `from_last`, from the last item."""

    number: int
    from_last: bool = False

    def of(self, count: int) -> int:
        """Return the position in an array of this length."""
        return count - 1 - self.number if self.from_last else self.number


@dataclass(frozen=True, slots=True)
class EveryItem:
    """All items of an array; any other value itself."""


@dataclass(frozen=True, slots=True)
class EveryMember:
    """All members of an object."""


@dataclass(frozen=True, slots=True)
class EveryDepth:
    """A value and all values inside."""


Step = Member | Items | EveryItem | EveryMember | EveryDepth


@functools.lru_cache(maxsize=_PATHS)
def parse_path(text: str) -> tuple[Step, ...]:
    """Parse a path."""
    rest = text.strip()
    if rest.startswith("$"):
        rest = rest[1:]
    elif _FIRST_NAME.match(rest):
        rest = "." + rest
    elif rest:
        raise _not_a_path(text)
    steps: list[Step] = []
    position = 0
    while position < len(rest):
        match = _STEP.match(rest, position)
        if match is None or (position == 0 and rest[:1].isspace()):
            raise _not_a_path(text)
        steps.append(_step(match, text))
        position = match.end()
    return tuple(steps)


def select(root: JsonNode, path: tuple[Step, ...]) -> list[JsonNode]:
    """Return the values that a path selects, in document order."""
    nodes = [root]
    for step in path:
        nodes = [inner for node in nodes for inner in _follow(node, step)]
    return nodes


def _follow(node: JsonNode, step: Step) -> Iterator[JsonNode]:
    match step:
        case Member():
            member = node.members().get(step.name)
            if member is not None:
                yield member
        case EveryMember():
            yield from node.members().values()
        case EveryItem():
            yield from node.items() if node.kind is JsonKind.ARRAY else [node]
        case EveryDepth():
            yield node
            for inner in (*node.items(), *node.members().values()):
                yield from _follow(inner, step)
        case Items():
            items = node.items()
            for first, last in step.spans:
                places = range(first.of(len(items)), last.of(len(items)) + 1)
                yield from (items[i] for i in places if 0 <= i < len(items))
        case _:
            assert_never(step)


def _step(match: re.Match[str], text: str) -> Step:
    kind = match.lastgroup
    value = match[kind] if kind else ""
    match kind:
        case "name":
            return Member(value)
        case "quoted" | "key":
            return Member(_unquoted(value, text))
        case "deep":
            return EveryDepth()
        case "members":
            return EveryMember()
        case "every":
            return EveryItem()
        case _:
            return Items(tuple(_span(part, text) for part in value.split(",")))


def _span(part: str, text: str) -> tuple[Place, Place]:
    match = _ITEM.fullmatch(part)
    if match is None:
        raise _not_a_path(text)
    first = _place(match[1])
    return first, first if match[2] is None else _place(match[2])


def _place(word: str) -> Place:
    if not word.startswith("last"):
        return Place(int(word))
    _, _, back = word.partition("-")
    return Place(int(back or 0), from_last=True)


def _unquoted(value: str, text: str) -> str:
    try:
        return str(json.loads(value))
    except ValueError as error:
        raise _not_a_path(text) from error


def _not_a_path(text: str) -> InvalidExpressionError:
    msg = f"Invalid JSONPath {text!r}: write $ and steps such as .name, [0] or [*]"
    return InvalidExpressionError(msg, text=text)


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
    nodes = select(document, parse_path(path))
    texts = [node.text() for node in nodes]
    if len(texts) == 1:
        return texts[0]
    return f"[{','.join(texts)}]" if texts else None


def _exists(document: JsonNode, path: str) -> bool:
    return bool(select(document, parse_path(path)))


def _length(document: JsonNode, path: str) -> int | None:
    nodes = select(document, parse_path(path))
    return len(nodes[0].items()) if nodes else None


def _contains(document: JsonNode, path: str, wanted: str) -> bool:
    nodes = select(document, parse_path(path))
    return any(_is(item, wanted) for node in nodes for item in node.items())


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
    child = _child(document, key)
    return None if child is None else child.stored()


def _converted(convert: Callable[[JsonNode], Any]) -> Compute:
    def compute(document: JsonNode, key: str) -> Any:
        child = _child(document, key)
        if child is None or child.kind is JsonKind.NULL:
            return None
        return convert(child)

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
