"""Tables of the read tests, written by the official release, with their expected rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from lancelake.commit.snapshot import Latest, Snapshot, open_snapshot
from lancelake.storage.location import Location

STRUCT = pa.struct([("x", pa.int32()), ("y", pa.string())])
SCHEMA = pa.schema(
    [
        ("key", pa.int64()),
        ("a", pa.int32()),
        ("s", pa.string()),
        ("st", STRUCT),
        ("l", pa.list_(pa.int16())),
        ("f", pa.float32()),
    ]
)
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Varied:
    """A table with a past: where it lies, and its live rows in order with all their columns."""

    uri: str
    rows: pa.Table

    @property
    def keys(self) -> list[int]:
        """Keys of the live rows."""
        return list(self.rows["key"].to_pylist())


def open_source(uri: str | Path) -> Snapshot:
    """Open the latest version of a table."""
    return open_snapshot(Location.parse(uri), Latest())


def row(key: int) -> Row:
    """Return the row of a key, with nulls here and there."""
    return {
        "key": key,
        "a": None if key % 5 == 0 else key % 7,
        "s": None if key % 6 == 0 else f"s{key % 4}" * (key % 3 + 1),
        "st": None if key % 4 == 3 else {"x": None if key % 8 == 0 else key, "y": str(key)},
        "l": None if key % 7 == 0 else list(range(key % 3)),
        "f": None if key % 9 == 0 else (float("nan") if key % 4 == 0 else key / 10),
    }


def rows(start: int, stop: int) -> pa.Table:
    """Return rows by key."""
    return pa.Table.from_pylist([row(key) for key in range(start, stop)], SCHEMA)


def varied(path: Path, *, stable_row_ids: bool = False, version: str = "2.1") -> Varied:
    """Make a table of fragments that differ: in files, columns, deletions.

    Fragments 0 to 2 have ten rows each and their columns in two files, fragment 3 lacks `a` and
    `n`, fragment 4 has one row. `s` was renamed to `text`, `l` dropped, `z` never written.
    """
    table = lance.write_dataset(
        rows(0, 30),
        path,
        max_rows_per_file=10,
        data_storage_version=version,
        enable_stable_row_ids=stable_row_ids,
    )
    table.delete("key % 4 = 1")
    table.add_columns({"n": "key * 2"})
    table.add_columns(pa.field("z", pa.struct([("q", pa.int8())])))
    table.alter_columns({"path": "s", "name": "text"})
    table.drop_columns(["l"])
    some = rows(30, 36).select(["key", "st", "f"])
    table = lance.write_dataset(some, path, mode="append")
    table.delete("key IN (30, 35)")
    one = _current(rows(36, 37), has_all=True)
    lance.write_dataset(one, path, mode="append")
    return Varied(str(path), _expected())


def _expected() -> pa.Table:
    first = [key for key in range(30) if key % 4 != 1]
    parts = [
        _current(pa.Table.from_pylist([row(key) for key in first], SCHEMA), has_all=True),
        _current(rows(31, 35), has_all=False),
        _current(rows(36, 37), has_all=True),
    ]
    return pa.concat_tables(parts).combine_chunks()


def _current(table: pa.Table, *, has_all: bool) -> pa.Table:
    """Return rows as the last version has them."""
    keys = table["key"].to_pylist()
    empty = pa.nulls(len(keys))
    columns = {
        "key": table["key"],
        "a": table["a"] if has_all else empty.cast(pa.int32()),
        "text": table["s"] if has_all else empty.cast(pa.string()),
        "st": table["st"],
        "f": table["f"],
        "n": pa.array([2 * key if has_all else None for key in keys], pa.int64()),
        "z": pa.nulls(len(keys), pa.struct([("q", pa.int8())])),
    }
    return pa.table(columns)


def versioned(path: Path) -> None:
    """Make a table of four versions with tags, a branch of two and a detached version.

    Rows: 3 in version 1, then 6, 5 and 5; on branch `feat/x`, forked from version 2, 6 and 9.
    """
    table = lance.write_dataset(rows(0, 3), path, commit_message="first")
    table = lance.write_dataset(rows(3, 6), path, mode="append")
    table.delete("key = 4")
    table.update_config({"some": "thing"})
    table.tags.create("first", 1)
    table.tags.create("then", 2)
    branch = table.create_branch("feat/x", 2)
    lance.write_dataset(rows(6, 9), branch.uri, mode="append")
    table.tags.create("aside", ("feat/x", 3))
    fragment = lance.LanceFragment.create(str(path), rows(10, 14))
    operation = lance.LanceOperation.Append([fragment])
    lance.LanceDataset.commit(str(path), operation, read_version=4, detached=True)
