"""Vector searches, and builds of vector indices with their memory."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import lance
import numpy as np

import lancelake
from benchmarks import tables
from benchmarks.measure import Case

DIMENSION = 128
_K = 10
_QUERIES = 1000
_PROBES = 10
_PARTITION_ROWS = 8192
_PARTS = 16
_SEED = 7
_INDEXED = {"IVF_PQ": {"num_sub_vectors": _PARTS}, "IVF_HNSW_SQ": {}}
BUILD_ROWS = 5_000_000
BUILD_TARGET_MB = 2048
_BUILD = """
import pathlib, sys
library, uri, kind, partitions = sys.argv[1:]
module = __import__(library)
options = {"num_sub_vectors": 16} if kind.endswith("PQ") else {}
module.dataset(uri).create_index(
    "v", kind, replace=True, num_partitions=int(partitions), **options
)
status = pathlib.Path("/proc/self/status").read_text()
print(int(status.partition("VmHWM:")[2].split()[0]) // 1024)
"""


def cases(rows: int) -> Iterator[Case]:
    """Yield the comparisons of flat and indexed searches, with warm caches, and of builds.

    Both search the same index, so that neither can trade recall for speed; graphs are searched by
    official Lance alone, with the `ef` at which it finds as many of the nearest rows.
    """
    uris = {kind: indexed(kind, rows) for kind in _INDEXED}
    tables_of = {kind: (lancelake.dataset(uri), lance.dataset(uri)) for kind, uri in uris.items()}
    queries = np.random.default_rng(_SEED).random((_QUERIES, DIMENSION), dtype=np.float32)

    def single(name: str, target: float, rounds: int, kind: str, **options: Any) -> Case:
        """Compare searches of one query, another one each time."""
        ours, official = tables_of[kind]
        mine, theirs = itertools.cycle(queries), itertools.cycle(queries)
        near = {"column": "v", "k": _K, **options}
        return Case(
            name=name,
            target=target,
            ours=lambda: ours.to_table(["c0"], nearest={**near, "q": next(mine)}).num_rows,
            official=lambda: (
                official.to_table(["c0"], nearest={**near, "q": next(theirs)}).num_rows
            ),
            rounds=rounds,
        )

    yield single(f"flat search of {rows:,} x {DIMENSION}", 1.0, 9, "IVF_PQ", use_index=False)
    yield single("IVF_PQ, one query", 1.5, 101, "IVF_PQ", nprobes=_PROBES)
    refined = {"nprobes": _PROBES, "refine_factor": 5}
    yield single("IVF_PQ, one query, refined", 1.5, 101, "IVF_PQ", **refined)
    graph = {"nprobes": _PROBES, "ef": _equal_ef(*tables_of["IVF_HNSW_SQ"], queries[:50])}
    name = f"IVF_HNSW_SQ, one query, at the recall of ef={graph['ef']}"
    yield single(name, 1.5, 101, "IVF_HNSW_SQ", **graph)
    for kind, (ours, official) in tables_of.items():
        yield _many(kind, ours, official, queries)
    for kind in _INDEXED:
        yield Case(
            name=f"{kind}, build of {rows:,} x {DIMENSION}",
            target=1.0,
            ours=lambda kind=kind: _build(lancelake, kind, uris[kind], rows),
            official=lambda kind=kind: _build(lance, kind, uris[kind], rows),
            rounds=1,
        )


def build_peak_mb(library: str, kind: str) -> int:
    """Build an index of a large table; return the peak resident size in MB."""
    uri = tables.vectors(BUILD_ROWS, DIMENSION)
    args = [library, uri, kind, str(BUILD_ROWS // _PARTITION_ROWS)]
    command = [sys.executable, "-c", _BUILD, *args]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _many(kind: str, ours: Any, official: Any, queries: np.ndarray) -> Case:
    near = {"column": "v", "q": queries, "k": _K, "nprobes": _PROBES}
    return Case(
        name=f"{kind}, {len(queries):,} queries in one call",
        target=1.0,
        ours=lambda: ours.to_table(["c0"], nearest=near).num_rows,
        official=lambda: official.to_table(["c0"], nearest=near).num_rows,
        rounds=3,
    )


def _equal_ef(ours: Any, official: Any, queries: np.ndarray) -> int:
    """Return the effort at which official Lance finds about as many of the nearest rows."""
    near = {"column": "v", "k": _K}
    exact = [_found(ours, {**near, "q": q, "use_index": False}) for q in queries]

    def recall(table: Any, **options: Any) -> float:
        found = [_found(table, {**near, "q": q, "nprobes": _PROBES, **options}) for q in queries]
        return float(np.mean([len(a & b) / _K for a, b in zip(found, exact, strict=True)]))

    wanted = recall(ours) - 0.01
    efforts = (15, 20, 30, 50, 75, 100, 150, 200, 300, 500)
    return next((ef for ef in efforts if recall(official, ef=ef) >= wanted), efforts[-1])


def _found(table: Any, near: dict[str, Any]) -> set[int]:
    return set(table.to_table([], nearest=near, with_row_id=True)["_rowid"].to_pylist())


def indexed(kind: str, rows: int) -> str:
    """Return a table of vectors with an index."""
    source = tables.vectors(rows, DIMENSION)
    uri = source.replace(".lance", f"-{kind.lower()}.lance")
    if not (tables.ROOT / uri).exists():
        shutil.copytree(source, uri)
        _build(lancelake, kind, uri, rows)
    return uri


def _build(module: Any, kind: str, uri: str, rows: int) -> str:
    sizes = {"num_partitions": max(1, rows // _PARTITION_ROWS), **_INDEXED[kind]}
    table = module.dataset(uri).create_index("v", kind, name="near", replace=True, **sizes)
    return str(table.describe_indices()[0].index_type)
