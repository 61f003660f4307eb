"""Hive partition columns from folder names, as in `day=1/part.parquet`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath
from urllib.parse import unquote

import pyarrow as pa

_NULL = "__HIVE_DEFAULT_PARTITION__"
_FOLDER = re.compile(r"([^=]+)=(.*)")
_WHOLE = re.compile(r"-?[0-9]{1,18}")


def partition_columns(names: Sequence[str]) -> dict[str, dict[str, pa.Scalar]]:
    """Return the partition values of each file: integers if all are integers, else text.

    A number with leading zeros is text, since it would not be written back unchanged.
    """
    found = {name: _folders(name) for name in names}
    columns = {column for values in found.values() for column in values}
    types = {
        column: _type([v[column] for v in found.values() if v.get(column) is not None])
        for column in columns
    }
    return {
        name: {c: pa.scalar(_value(v, types[c]), types[c]) for c, v in values.items()}
        for name, values in found.items()
        if values
    }


def _folders(name: str) -> dict[str, str | None]:
    matches = (_FOLDER.fullmatch(part) for part in PurePath(name).parts[:-1])
    pairs = ((unquote(m[1]), unquote(m[2])) for m in matches if m is not None)
    return {column: None if value == _NULL else value for column, value in pairs}


def _type(values: Sequence[str | None]) -> pa.DataType:
    whole = all(v is not None and _WHOLE.fullmatch(v) and str(int(v)) == v for v in values)
    return pa.int64() if values and whole else pa.string()


def _value(text: str | None, dtype: pa.DataType) -> int | str | None:
    return text if text is None or not pa.types.is_integer(dtype) else int(text)
