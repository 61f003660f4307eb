"""The source of streams, which is compacted, cleaned up and gains columns, and its model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pyarrow as pa

import lancelake.pylance as lance
from tests.spark_faults.storm_streams import read_until

ROWS = 20
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.int64())])
_MOST_COLUMNS = 6


class Source:
    """A table that only gains rows and columns; `rows` are those it has."""

    def __init__(self, place: Path, streams: Sequence[str], chance: Random) -> None:
        """Create the table with its first rows, and the table of upserts."""
        self._place, self._streams, self._chance = place, streams, chance
        self.uri = str(place / "source.lance")
        self.rows: dict[int, dict[str, int]] = {}
        self.widened: set[int] = set()
        """Versions that gave a column to all rows."""
        self.cleaned = 0
        self._columns: list[str] = []
        place.mkdir(parents=True)
        self._append("create")
        empty = lance.write_dataset(SCHEMA.empty_table(), str(place / "wal.lance"))
        empty.wal.initialize(buckets=2, key="id")

    def change(self) -> None:
        """Append rows, and sometimes do something else before."""
        other = self._chance.choice((None, None, self._compact, self._clean_up, self._widen))
        if other is not None:
            other()
        self._append("append")

    def _append(self, mode: str) -> None:
        first = len(self.rows)
        new = {i: {"id": i, "v": i * 3} for i in range(first, first + ROWS)}
        for row in new.values():
            row.update({name: row["id"] + place for place, name in enumerate(self._columns)})
        schema = SCHEMA if mode == "create" else lance.dataset(self.uri).schema
        rows = pa.Table.from_pylist(list(new.values()), schema=schema)
        lance.write_dataset(rows, self.uri, mode=mode, enable_stable_row_ids=True)
        self.rows.update(new)

    def _compact(self) -> None:
        lance.dataset(self.uri).optimize.compact_files(target_rows_per_fragment=10 * ROWS)

    def _clean_up(self) -> None:
        """Remove the versions that no stream needs any more."""
        found = lance.dataset(self.uri)
        needed = min(read_until(self._place, name) for name in self._streams) - 1
        old = [v["version"] for v in found.versions() if v["version"] < needed]
        if old:
            found.cleanup_old_versions(versions=old, delete_unverified=True)
            self.cleaned += len(old)

    def _widen(self) -> None:
        """Add a column that is NOT NULL; older versions lack it."""
        if len(self._columns) == _MOST_COLUMNS:
            return
        name, place = f"c{len(self._columns)}", len(self._columns)
        found = lance.dataset(self.uri)
        found.add_columns({name: f"id + {place}"})
        self._columns.append(name)
        self.widened.add(lance.dataset(self.uri).version)

    def may_hold(self, row: dict[str, object]) -> bool:
        """Whether a stream that reads all columns may deliver a row: those it lacked are null."""
        return all(
            value == row["id"] + int(name[1:])  # type: ignore[operator]
            for name, value in row.items()
            if name not in {"id", "v"} and value is not None
        )
