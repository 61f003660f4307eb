"""Rows as text: JSON lines and CSV."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TextIO

import pyarrow as pa

from lancelake.table.describe.arrow_json import Json, to_json

_NEEDS_QUOTES = re.compile('[",\\r\\n]')


def json_lines(batch: pa.RecordBatch) -> Iterator[str]:
    """Yield each row as a JSON object on one line."""
    values = [[to_json(value) for value in column] for column in batch.columns]
    names = batch.schema.names
    for row in zip(*values, strict=True):
        yield json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, allow_nan=False)


def write_json_lines(batches: Iterable[pa.RecordBatch], file: TextIO) -> None:
    """Write rows as JSON objects, one on each line."""
    for batch in batches:
        file.writelines(f"{line}\n" for line in json_lines(batch))


def write_csv(batches: Iterable[pa.RecordBatch], schema: pa.Schema, file: TextIO) -> None:
    """Write rows as CSV with a header; nested values are JSON, bytes base64, nulls empty.

    An empty string is quoted, so that it differs from a null.
    """
    file.write(_csv_line(schema.names))
    for batch in batches:
        columns = [[to_json(value) for value in column] for column in batch.columns]
        file.writelines(_csv_line(row) for row in zip(*columns, strict=True))


def write_documents(documents: Iterable[Json], file: TextIO) -> None:
    """Write documents as JSON objects, one on each line."""
    for document in documents:
        file.write(json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n")


def write_csv_documents(documents: Sequence[Mapping[str, Json]], file: TextIO) -> None:
    """Write documents as CSV, with a column for each key that one of them has."""
    names = list(dict.fromkeys(name for document in documents for name in document))
    if not names:
        return
    file.write(_csv_line(names))
    file.writelines(_csv_line(map(document.get, names)) for document in documents)


def _csv_line(values: Iterable[Json]) -> str:
    return ",".join(map(_csv_field, values)) + "\n"


def _csv_field(value: Json) -> str:
    match value:
        case None:
            return ""
        case bool() | dict() | list():
            text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        case _:
            text = str(value)
    if text and not _NEEDS_QUOTES.search(text):
        return text
    return '"' + text.replace('"', '""') + '"'
