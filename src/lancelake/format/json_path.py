"""JSONPath: parsing, and selection of values in binary JSON.

A path is `$` and steps: `.name`, `."name"`, `["name"]`, `.*`, `.**`, `[0]`, `[last - 1]`,
`[0 to 2]`, `[0, 2]`, `[*]`. The `$` can be left out before a name.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from lancelake.errors import InvalidExpressionError
from lancelake.format.jsonb_node import JsonKind, JsonNode

_PATHS = 256
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_STEP = re.compile(
    rf"\s*(?:[.:](?P<name>\w+)|[.:](?P<quoted>{_QUOTED})|[.:](?P<deep>\*\*)|[.:](?P<members>\*)"
    rf"|\[\s*(?P<key>{_QUOTED})\s*\]|\[\s*(?P<every>\*)\s*\]|\[(?P<items>[^\]]*)\])"
)
_FIRST_NAME = re.compile(r"\s*\w+")
_PLACE = r"(last(?:\s*-\s*\d+)?|-?\d+)"
_ITEM = re.compile(rf"\s*{_PLACE}(?:\s+to\s+{_PLACE})?\s*")


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
    found = [root]
    for step in path:
        found = [inner for node in found for inner in _follow(node, step)]
    return found


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
