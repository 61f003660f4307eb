"""One of many concurrent writers; runs with any library and logs its results.

Arguments, as one JSON object: `library`, `uri`, `options`, `writer`, `seed`, `operations`,
`seconds` (None: stop after the operations) and the ids of the first rows that belong to it.
Each operation is a line before it begins and a line when it is known to be done.
"""

from __future__ import annotations

import importlib
import json
import random
import sys
import time
from typing import Any

import pyarrow as pa

ROWS = 5
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("value", pa.int64())])


class Writer:
    """One writer: appends rows of its own, deletes, updates and tags."""

    def __init__(self, lance: Any, given: dict[str, Any]) -> None:
        """Take what is given."""
        self.lance = lance
        self.uri = given["uri"]
        self.options = given["options"]
        self.name = given["writer"]
        self.chance = random.Random(given["seed"])
        self.mine: list[int] = list(given["rows"])
        self.number = 0

    def step(self) -> None:
        """Do one operation."""
        kinds = ["append", "append", "delete", "delete", "update", "tag"]
        getattr(self, self.chance.choice(kinds))()
        self.number += 1

    def append(self) -> None:
        """Add rows that nobody else adds."""
        first = (self.name * 10_000 + self.number) * ROWS + 1_000_000
        ids = list(range(first, first + ROWS))
        rows = pa.table([ids, [0] * ROWS], schema=SCHEMA)
        if self._told("append", {"ids": ids}, lambda: self._append(rows)):
            self.mine += ids

    def delete(self) -> None:
        """Delete some of the rows that belong to it."""
        ids = self._some()
        self.mine = [i for i in self.mine if i not in ids]
        self._told("delete", {"ids": ids}, lambda: self._delete(_where(ids)))

    def update(self) -> None:
        """Change some of the rows that belong to it."""
        ids = self._some()
        value = self.name * 10_000 + self.number
        if not self._told("update", {"ids": ids, "value": value}, lambda: self._set(ids, value)):
            self.mine = [i for i in self.mine if i not in ids]

    def tag(self) -> None:
        """Name the newest version."""
        ds = self.lance.dataset(self.uri, storage_options=self.options)
        name = f"tag-{self.name}-{self.number}"
        facts = {"name": name, "version": ds.version}
        self._told("tag", facts, lambda: ds.tags.create(name, ds.version))

    def _some(self) -> list[int]:
        return self.chance.sample(self.mine, min(3, len(self.mine)))

    def _append(self, rows: pa.Table) -> None:
        self.lance.write_dataset(rows, self.uri, mode="append", storage_options=self.options)

    def _delete(self, where: str) -> None:
        self.lance.dataset(self.uri, storage_options=self.options).delete(where)

    def _set(self, ids: list[int], value: int) -> None:
        ds = self.lance.dataset(self.uri, storage_options=self.options)
        ds.update({"value": str(value)}, _where(ids))

    def _told(self, kind: str, facts: dict[str, Any], act: Any) -> bool:
        log({"begun": self.number, "kind": kind, **facts})
        try:
            act()
        except Exception as error:  # noqa: BLE001  # a refusal is an outcome too
            log({"failed": self.number, "error": f"{type(error).__name__}: {error}"})
            return False
        log({"done": self.number})
        return True


def log(line: dict[str, Any]) -> None:
    """Tell the parent."""
    print(json.dumps(line), flush=True)


def _where(ids: list[int]) -> str:
    return f"id in ({', '.join(str(i) for i in ids)})" if ids else "id = -1"


def main() -> None:
    """Write until the operations, or the seconds, are over."""
    given = json.loads(sys.argv[1])
    library = importlib.import_module(given["library"])
    writer = Writer(library, given)
    log({"ready": True})
    sys.stdin.readline()
    until = None if given["seconds"] is None else time.monotonic() + given["seconds"]
    while writer.number < given["operations"] if until is None else time.monotonic() < until:
        writer.step()


if __name__ == "__main__":
    main()
