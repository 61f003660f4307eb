"""A small table with a MemWAL: generations and a tail, and what a user does with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lancelake.pylance as lance
from lancelake.memwal.merge import merge_generations
from lancelake.memwal.search import find_rows
from lancelake.memwal.view import Freshness, open_view
from tests.support import memwal_tables as mem


def build(root: Path) -> Path:
    """Write the table below a folder and return its place."""
    uri = root / "memwal.lance"
    base = mem.new_table(uri, *((key, "base") for key in range(8)))
    mine = mem.writer(base)
    mine.put(mem.rows((1, "first"), (9, "first")))
    mine.flush()
    mine.delete(mem.keys(2))
    mine.put(mem.rows((9, "second")))
    mine.flush()
    mine.put(mem.rows((3, "tail"), (10, "tail")))
    return uri


def _lookup(table: lance.LanceDataset) -> None:
    find_rows(open_view(table._snapshot, Freshness.DURABLE), mem.keys(1, 2, 9, 10))


def _write(table: lance.LanceDataset) -> None:
    mine = mem.writer(table._snapshot)
    mine.put(mem.rows((4, "late")))
    mine.flush()


READS: dict[str, Callable[[lance.LanceDataset], object]] = {
    "view": lambda table: open_view(table._snapshot, Freshness.DURABLE).to_table(),
    "flushed": lambda table: open_view(table._snapshot, Freshness.FLUSHED).to_table(["id"]),
    "lookup": _lookup,
    "indices": lambda table: table.describe_indices(),
}
WRITES: dict[str, Callable[[lance.LanceDataset], object]] = {
    "write": _write,
    "merge": lambda table: merge_generations(table._snapshot),
    "delete": lambda table: table.delete("id = 3"),
}
