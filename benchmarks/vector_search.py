"""How fast are vector searches, and builds of vector indices?"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from typing import Any

import lance
import numpy as np

import lancelake
from benchmarks import tables
from benchmarks.measure import Case

_DIMENSION = 128
_K = 10
_QUERIES = 1000
_PROBES = 10
_PARTITION_ROWS = 8192
_PARTS = 16
_SEED = 7


def cases(rows: int) -> Iterator[Case]:
    """Yield the comparisons of flat and indexed searches, with warm caches."""
    uri = _indexed(rows)
    ours, official = lancelake.dataset(uri), lance.dataset(uri)
    queries = np.random.default_rng(_SEED).random((_QUERIES, _DIMENSION), dtype=np.float32)

    def single(name: str, target: float, rounds: int, **options: Any) -> Case:
        """Compare searches of one query, another one each time."""
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

    yield single("flat search", 1.0, 9, use_index=False)
    yield single("IVF_PQ, one query", 1.5, 101, nprobes=_PROBES)
    refined = {"nprobes": _PROBES, "refine_factor": 5}
    yield single("IVF_PQ, one query, refined", 1.5, 101, **refined)
    near = {"column": "v", "q": queries, "k": _K, "nprobes": _PROBES}
    yield Case(
        name="IVF_PQ, 1,000 queries in one call",
        target=1.0,
        ours=lambda: ours.to_table(["c0"], nearest=near).num_rows,
        official=lambda: official.to_table(["c0"], nearest=near).num_rows,
        rounds=3,
    )
    yield Case(
        name="IVF_PQ, build",
        target=1.0,
        ours=lambda: _build(lancelake, uri, rows),
        official=lambda: _build(lance, uri, rows),
        rounds=1,
    )


def _indexed(rows: int) -> str:
    """Return a table of vectors with an index."""
    source = tables.vectors(rows, _DIMENSION)
    uri = source.replace(".lance", "-indexed.lance")
    if not (tables.ROOT / uri).exists():
        shutil.copytree(source, uri)
        _build(lancelake, uri, rows)
    return uri


def _build(module: Any, uri: str, rows: int) -> str:
    partitions = max(1, rows // _PARTITION_ROWS)
    sizes = {"num_partitions": partitions, "num_sub_vectors": _PARTS}
    table = module.dataset(uri).create_index("v", "IVF_PQ", name="near", replace=True, **sizes)
    return str(table.describe_indices()[0].index_type)
