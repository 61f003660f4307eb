"""Print JSON documents as an indented outline, with long values shortened."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rich.text import Text

from lancelake.cli.words import printable, shortened

Json = Any  # what the json module takes
_INDENT = "  "
_VALUE_MOST = 100
_ITEMS_ON_A_LINE = 16
_NOTHING: tuple[Json, ...] = (None, "", [], {})


def outline(value: Json, *, indent: str = "") -> Iterator[Text]:
    """Yield the lines of a document; absent and empty fields are omitted."""
    if isinstance(value, dict):
        for key, each in value.items():
            if each not in _NOTHING:
                yield from _member(Text(f"{indent}{printable(str(key))}:", "cyan"), each, indent)
        return
    for each in value:
        lines = iter([_short(each)]) if _fits(each) else outline(each, indent="")
        # The dash of a list item is on the first line of the item.
        dash = f"{indent}- "
        for line in lines:
            yield Text.assemble((dash, "dim"), line)
            dash = f"{indent}  "


def _member(head: Text, value: Json, indent: str) -> Iterator[Text]:
    if _fits(value):
        yield Text.assemble(head, " ", _short(value))
    else:
        yield head
        yield from outline(value, indent=indent + _INDENT)


def _fits(value: Json) -> bool:
    """Whether a value fits on one line: a scalar, or a list of a few numbers."""
    if isinstance(value, dict):
        return not value
    if isinstance(value, list):
        is_flat = all(isinstance(each, int | float | None) for each in value)
        return is_flat and len(value) <= _ITEMS_ON_A_LINE
    return True


def _short(value: Json) -> Text:
    if isinstance(value, str):
        return Text(shortened(printable(value), _VALUE_MOST))
    return Text(json.dumps(value), style="dim" if value is None else "")
