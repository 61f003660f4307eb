"""Benchmark of searches, compared with LanceDB on the same tables and indices.

.interop/peers/bin/python -m benchmarks.lancedb_search --vectors 10000 --documents 10000
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import lancelake
from benchmarks import text_search, vector_search
from benchmarks.measure import Case, compare
from benchmarks.processes import MissingPeerError, print_result, skipping

_K = 10
_PROBES = 10
_QUERIES = 100
_TARGET = 1.5
_SEED = 7


def main() -> None:
    """Report every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vectors", type=int, default=1_000_000)
    parser.add_argument("--documents", type=int, default=text_search.DOCUMENTS)
    options = parser.parse_args()
    with skipping():
        for case in cases(options.vectors, options.documents):
            print_result(compare(case))


def cases(vectors: int, documents: int) -> Iterator[Case]:
    """Yield searches of vectors and of text; both libraries use the index that we built."""
    yield from _vectors(vector_search.indexed("IVF_PQ", vectors), vectors)
    yield from _texts(text_search.indexed(documents), documents)


def _vectors(uri: str, rows: int) -> Iterator[Case]:
    ours, theirs = lancelake.dataset(uri), _lancedb_table(uri)
    chance = np.random.default_rng(_SEED)
    queries = chance.random((_QUERIES, vector_search.DIMENSION), dtype=np.float32)

    def search(query: np.ndarray, *, use_index: bool) -> Any:
        found = theirs.search(query, vector_column_name="v").limit(_K).select(["c0", "_distance"])
        return found.nprobes(_PROBES) if use_index else found.bypass_vector_index()

    for name, use_index, rounds in (("flat search", False, 9), ("IVF_PQ, one query", True, 101)):
        near = {"column": "v", "k": _K, "nprobes": _PROBES, "use_index": use_index}
        yield _case(
            f"{name} of {rows:,} vectors",
            rounds,
            list(queries),
            lambda q, near=near: ours.to_table(["c0"], nearest={**near, "q": q}).num_rows,
            lambda q, on=use_index: search(q, use_index=on).to_arrow().num_rows,
        )


def _texts(uri: str, documents: int) -> Iterator[Case]:
    ours, theirs = lancelake.dataset(uri), _lancedb_table(uri)
    for name, texts in text_search.SAMPLES.items():
        yield _case(
            f"two {name} words of {documents:,} texts, best {_K}",
            41,
            texts,
            lambda t: _scores(
                ours.to_table(["id", "_score"], full_text_query={"query": t}, limit=_K)
            ),
            lambda t: _scores(
                theirs.search(t, query_type="fts").limit(_K).select(["id", "_score"]).to_arrow()
            ),
        )


def _case(
    name: str,
    rounds: int,
    queries: list[Any],
    ours: Callable[[Any], object],
    theirs: Callable[[Any], object],
) -> Case:
    """Compare searches of another query each time."""
    mine, others = itertools.cycle(queries), itertools.cycle(queries)
    return Case(
        name=name,
        target=_TARGET,
        ours=lambda: ours(next(mine)),
        official=lambda: theirs(next(others)),
        rounds=rounds,
        peer=f"LanceDB {version('lancedb')}",
    )


def _scores(found: Any) -> list[float]:
    """Return the scores, rounded: rows of equal score may change places."""
    return [round(score, 3) for score in found["_score"].to_pylist()]


def _lancedb_table(uri: str) -> Any:
    try:
        import lancedb  # noqa: PLC0415  # may be absent
    except ImportError as error:
        raise MissingPeerError("lancedb is not installed") from error
    path = Path(uri)
    return lancedb.connect(path.parent).open_table(path.stem)


if __name__ == "__main__":
    main()
