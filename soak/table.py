"""The table of a round: its columns, initial rows, and the keys of each process."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from soak.history import FIRST

ACCOUNTS = range(16)
"""Values move between these rows, which are never deleted."""
BALANCE = 1000
POOL = range(1_000, 1_120)
"""Keys that anyone upserts."""
_OWN_KEYS = 1_000_000
_UPSERTED_KEYS = 40
COLUMN = "v * 0 + id * 3 + 1"
"""What every further column holds."""
BASE = ("id", "v", "by")


def schema(*, is_keyed: bool) -> pa.Schema:
    """Return the columns of a new table."""
    metadata = {"lance-schema:unenforced-primary-key": "true"} if is_keyed else None
    return pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False, metadata=metadata),
            pa.field("v", pa.int64()),
            pa.field("by", pa.string()),
        ]
    )


def first_rows(*, is_keyed: bool) -> pa.Table:
    """Return the rows that a table begins with: the accounts, and half of the pool."""
    ids = [*ACCOUNTS, *POOL[::2]]
    values = [BALANCE] * len(ACCOUNTS) + [0] * len(POOL[::2])
    return pa.table([ids, values, [FIRST] * len(ids)], schema=schema(is_keyed=is_keyed))


def rows_for(found: pa.Schema, ids: Iterable[int], value: int, by: str) -> pa.Table:
    """Return rows with every column that the table has."""
    keys = list(ids)
    known: dict[str, list[Any]] = {
        "id": keys,
        "v": [value] * len(keys),
        "by": [by] * len(keys),
    }
    third = [key * 3 + 1 for key in keys]
    columns = [pa.array(known.get(field.name, third), field.type) for field in found]
    return pa.table(columns, schema=found)


def own_keys(slot: int, incarnation: int, number: int, count: int) -> list[int]:
    """Return new keys that no other process, and no other operation, ever uses."""
    first = ((slot + 1) * 1_000 + incarnation) * _OWN_KEYS + number * 100
    return list(range(first, first + count))


def own_pool(slot: int) -> range:
    """Return keys that only the processes of one slot upsert."""
    first = 100_000 + slot * 1_000
    return range(first, first + _UPSERTED_KEYS)


def plain(table: pa.Table) -> tuple[list[list[Any]], dict[str, list[int]]]:
    """Return rows for the log, and for each further column its nulls and its wrong values."""
    ids = table["id"].to_pylist()
    values, writers = table["v"].to_pylist(), table["by"].to_pylist()
    columns = {}
    for name in table.column_names:
        if name not in BASE:
            found = table[name].to_pylist()
            wrong = sum(x is not None and x != i * 3 + 1 for i, x in zip(ids, found, strict=True))
            columns[name] = [sum(x is None for x in found), wrong]
    return [list(row) for row in zip(ids, values, writers, strict=True)], columns
