"""Benchmarks of tables with very many versions or fragments."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

import lancelake
from benchmarks import tables
from benchmarks.measure import Case
from benchmarks.rows import fresh_copy
from lancelake.storage import disk_sync

VERSIONS = 10_000
FRAGMENTS = 100_000
ROUNDS = 5

_WORK = tables.ROOT / "many-work.lance"
_ROW = pa.table({"a": [1], "b": ["x"]})

_LOOKS: dict[str, Callable[[Any, str], object]] = {
    "open": lambda library, uri: library.dataset(uri).version,
    "versions": lambda library, uri: len(library.dataset(uri).versions()),
    "count": lambda library, uri: library.dataset(uri).count_rows(),
    "list of fragments": lambda library, uri: len(library.dataset(uri).get_fragments()),
    "first rows": lambda library, uri: library.dataset(uri).head(10).num_rows,
}


def cases(versions: int = VERSIONS, fragments: int = FRAGMENTS) -> Iterator[Case]:
    """Yield the comparisons."""
    for what, uri in (
        (f"{versions:,} versions", tables.many_versions(versions)),
        (f"{fragments:,} fragments", tables.many_fragments(fragments)),
    ):
        for name, look in _LOOKS.items():
            yield _look(f"{name}, {what}", uri, look)
        yield _append(f"append, {what}", Path(uri))
    shutil.rmtree(_WORK, ignore_errors=True)


def _look(name: str, uri: str, look: Callable[[Any, str], object]) -> Case:
    return Case(
        name=name,
        target=1.0,
        ours=lambda: look(lancelake, uri),
        official=lambda: look(lance, uri),
        rounds=ROUNDS,
    )


def _append(name: str, path: Path) -> Case:
    """Compare appends of one row, one after the other to the same copy."""
    fresh_copy(path, _WORK)
    return Case(
        name=name,
        target=1.0,
        ours=lambda: _appended(lancelake),
        official=lambda: _appended(lance),
        rounds=ROUNDS,
    )


def _appended(library: Any) -> str:
    with disk_sync.waiting(waits=False):
        library.write_dataset(_ROW, str(_WORK), mode="append")
    return "appended"
