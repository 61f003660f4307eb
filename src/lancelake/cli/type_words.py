"""Parse types on the command line."""

from __future__ import annotations

import re

import pyarrow as pa
import typer

from lancelake.errors import LanceTableError
from lancelake.format import logical_types

_ALIASES = {
    "boolean": "bool",
    "date": "date32:day",
    "float16": "halffloat",
    "float32": "float",
    "float64": "double",
    "text": "string",
}
_LIST = re.compile(r"list<(?P<item>.+)>")
_VECTOR = re.compile(r"(?P<item>.+)\[(?P<length>[1-9][0-9]*)\]")
_TIMESTAMP = re.compile(r"timestamp\[(?P<unit>s|ms|us|ns)(?:, *(?P<zone>.+))?\]")


def parse_type(text: str) -> pa.DataType:
    """Parse `int64`, `float[768]`, `list<string>`, `timestamp[us, UTC]` and logical types."""
    try:
        return _parsed(text.strip())
    except (LanceTableError, ValueError, pa.ArrowException) as error:
        msg = f"{text!r} is not a type; examples are int64, string, float[768], list<string>"
        raise typer.BadParameter(msg) from error


def _parsed(text: str) -> pa.DataType:
    if found := _LIST.fullmatch(text):
        return pa.list_(_parsed(found["item"]))
    if found := _TIMESTAMP.fullmatch(text):
        return pa.timestamp(found["unit"], found["zone"])
    if found := _VECTOR.fullmatch(text):
        return pa.list_(_parsed(found["item"]), int(found["length"]))
    return logical_types.to_arrow(_ALIASES.get(text, text))
